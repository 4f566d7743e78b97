"""Facts that a cluster file records of its account; they count in place of the catalog's."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated, Literal

from msgspec import Meta, field

from ultrascale.catalog.eks import TIER_LIMITS, TIER_LIMITS_SOURCE, TierLimits
from ultrascale.catalog.instance_types import InstanceType, lookup
from ultrascale.catalog.upgrades import STANDARD_SUPPORT_ENDS
from ultrascale.frozen import Frozen

Cells = Mapping[str, str]
_Count = Annotated[int, Meta(ge=1, le=1 << 30)]


class Card(Frozen, forbid_unknown_fields=True):
    """A network card of an instance type, as EC2 says it."""

    card: Annotated[int, Meta(ge=0, le=255)]  # Its index
    types: tuple[Literal["interface", "efa", "efa-only", "secondary"], ...]  # What it takes
    interfaces: _Count  # Most interfaces that it takes


class Hardware(Frozen, forbid_unknown_fields=True):
    """Cells of an instance type, as EC2 says them; None where EC2 says what the catalog says."""

    memory_mib: _Count | None = None
    accelerator_count: _Count | None = None
    accelerator_memory_mib_total: _Count | None = None


class Allocatable(Frozen, forbid_unknown_fields=True):
    """CPU, and memory without huge pages, that a node offered to pods."""

    millicpu: _Count
    memory_mib: _Count


class RecordedNodes(Frozen):
    """Recorded facts of a pool's nodes."""

    cells: Mapping[str, Cells] = field(default_factory=dict[str, Cells])  # By instance type
    # By instance type
    allocatable: Mapping[str, Allocatable] = field(default_factory=dict[str, Allocatable])
    start_seconds: int | None = None  # Seconds from a waiting pod to a ready node; None: not seen

    def spec(self, instance_type: str) -> InstanceType:
        """Return the entry of a type, with recorded cells in place of the catalog's."""
        entry, cells = lookup(instance_type), self.cells.get(instance_type)
        return entry if cells is None else InstanceType(instance_type, {**entry.cells, **cells})


class VersionFacts(Frozen):
    """Facts of a control plane's Kubernetes version, recorded ones before the catalog's."""

    tiers: Mapping[str, TierLimits] = field(default_factory=lambda: dict(TIER_LIMITS))
    tiers_seen: Mapping[str, date] = field(default_factory=dict[str, date])  # Days of recorded ones
    support_ends: Mapping[str, date] = field(default_factory=lambda: dict(STANDARD_SUPPORT_ENDS))
    addons: Mapping[str, str] = field(default_factory=dict[str, str])  # Recorded builds of add-ons

    def source_of(self, tier: str) -> str:
        """Return the source of a tier's limits."""
        day = self.tiers_seen.get(tier)
        return TIER_LIMITS_SOURCE if day is None else f"EKS's answer of {day}, recorded in `facts`"


class RecordedFact(Frozen):
    """A row of a cluster file's facts, without its value."""

    kind: str  # Its kind
    of: str  # Its subject
    seen: date  # Day of the answer
    ends: date | None = None  # The end that AWS states, if it is one


def card_cells(cards: Sequence[Card]) -> Cells:
    """Return the cells that follow from all network cards of a type.

    An instance with EFA is of the Nitro System, whose interfaces take prefixes.

    Sources:
        https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html
        https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-prefix-eni.html
    """
    efa = [str(card.card) for card in cards if "efa-only" in card.types]
    first = next((str(card.interfaces) for card in cards if not card.card), "")
    cells = {"network_cards": str(len(cards)), "efa_cards": " ".join(efa) or "none"}
    return {**cells, "enis_card0": first, **({"prefix_delegation": "yes"} if efa else {})}
