"""EKS add-ons."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AddonPlan:
    """An EKS add-on.

    Attributes:
        name: EKS's name.
        version: Pinned version.
        configuration: Configuration values, as the add-on's JSON schema has them.
        service_account: Service account that takes AWS permissions; None where it needs none.
        managed_policy: AWS managed policy of that service account.
        association_namespace: Namespace of that service account where the association is a
            resource of its own; None where it is part of the add-on.
        volume_key: ARN of the user's own key of volumes that it makes; None without one.
    """

    name: str
    version: str
    configuration: Mapping[str, object]
    service_account: str | None
    managed_policy: str | None
    association_namespace: str | None = None
    volume_key: str | None = None
