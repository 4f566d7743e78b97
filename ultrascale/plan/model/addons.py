"""EKS add-ons."""

from collections.abc import Mapping

from ultrascale.frozen import Frozen


class AddonPlan(Frozen):
    """An EKS add-on."""

    name: str  # EKS's name
    version: str  # Pinned version
    # Configuration values, by the add-on's JSON schema.
    configuration: Mapping[str, object]
    # Service account that takes AWS permissions; None where it needs none.
    service_account: str | None
    managed_policy: str | None  # AWS managed policy of that service account
    # Namespace of that service account where the association is a resource of its own; None where
    # it is part of the add-on.
    association_namespace: str | None = None
    # ARN of the user's own key of volumes that it makes; None without one.
    volume_key: str | None = None
