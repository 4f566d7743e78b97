"""Plans of parts, as the core sees them: what it asks of each, and what each says of itself."""

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Literal

from ultrascale.catalog.endpoints import Feature
from ultrascale.catalog.quotas import QuotaKey
from ultrascale.frozen import Frozen
from ultrascale.plan.model.images import CopiesPlan

KeyUse = Literal["volumes", "secrets", "storage", "registry", "logs"]
"""Things that a KMS key encrypts: volumes of nodes and claims; data of the Kubernetes API; file
systems, buckets and the database; images; log groups, metrics and the topic of alarms."""


class ControllerVersion(Frozen):
    """A controller of a part, and the minors of Kubernetes that it is made for."""

    name: str  # Its name
    version: str  # Its version
    latest: str  # Latest minor that its publisher names
    # Whether a later one is beyond what its publisher promises; else it is untested there.
    is_limit: bool = True


class QuotaUse(Frozen):
    """Use of a service quota."""

    quota: QuotaKey  # The quota
    value: float  # Amount, in the quota's unit
    formula: str  # Words of what it adds up


class StandingItem(Frozen):
    """A thing that is paid for as long as it stands, by its row of the price list."""

    name: str  # Its name in the table
    service: str  # Service of the price list
    item: str  # Item of the service
    quantity: float  # Amount, in the unit of the price
    words: str  # Words of what is counted


class WayIn(Frozen):
    """Subnets that have to be reached from the internet."""

    subnets: tuple[str, ...]  # Ids of those that exist
    clients: str  # Words for whom they let in
    instead: str  # What to write where they cannot be reached


class PlannedPart(Frozen):
    """The plan of a part. A method that it leaves as it is changes nothing of the core's."""

    # Module of `ultrascale_k8s` whose `charts` renders its plan; None where it has no objects.
    renderer: ClassVar[str | None] = None
    installs_charts: ClassVar[bool] = False  # Whether its stacks install charts by Helm

    def key(self, use: KeyUse) -> str | None:
        """Return the ARN of the user's own key for ``use``; None where it names none."""
        return None

    @property
    def copies(self) -> CopiesPlan | None:
        """Copies that take the place of all images and charts; None: publishers' own are pulled."""
        return None

    @property
    def features(self) -> Sequence[Feature]:
        """Its programs that call AWS from within the VPC."""
        return ()

    @property
    def pods(self) -> Mapping[str, int]:
        """Most pods of its Deployments on system nodes, by name."""
        return {}

    @property
    def quota_uses(self) -> Sequence[QuotaUse]:
        """Its use of service quotas."""
        return ()

    @property
    def standing(self) -> Iterable[StandingItem]:
        """Things of it beside nodes that are paid for."""
        return ()

    @property
    def versions(self) -> Sequence[ControllerVersion]:
        """Its controllers that are made for certain minors of Kubernetes."""
        return ()

    @property
    def linked_roles(self) -> Sequence[str]:
        """Principals of services whose service-linked role it needs."""
        return ()

    @property
    def way_in(self) -> WayIn | None:
        """Subnets by which clients reach it from the internet; None: it has no such clients."""
        return None

    @property
    def files(self) -> Mapping[str, str]:
        """Files beside the cluster file without which it is planned otherwise, by name."""
        return {}


def copies_of(parts: Iterable[PlannedPart]) -> CopiesPlan | None:
    """Return the copies that take the place of all images and charts; None without any."""
    return next((part.copies for part in parts if part.copies is not None), None)


def key_for(use: KeyUse, parts: Iterable[PlannedPart]) -> str | None:
    """Return the ARN of the user's own key for ``use``; None where no part names one."""
    return next((arn for part in parts if (arn := part.key(use)) is not None), None)


class PartNeeds(Frozen):
    """A part's table of `ultrascale plan`, and what stands beside it."""

    name: str  # Name of the table, and key in `plan --json`
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]  # Empty: the table is left out
    remarks: tuple[str, ...]  # Sentences below the tables
    needs: tuple[Frozen, ...]  # What `plan --json` has
    answers: tuple[Mapping[str, object], ...]  # What `plan NAME --json` has
