"""What a cluster needs of AWS: numbers, each with the sum that it comes from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

NeedState = Literal["within", "ask", "agreed", "beyond", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A number that follows from a cluster file at its full size.

    Attributes:
        id: Where it belongs and what it is, such as ``train.vcpus``.
        value: The number; None where no source states what it follows from.
        unit: What it counts.
        formula: The sum in words and numbers; why there is none, where ``value`` is None.
        sources: Pages that state its terms.
        without: Pools of which it holds nothing, as theirs is not known.
    """

    id: str
    value: float | None
    unit: str
    formula: str
    sources: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolNeeds:
    """What a pool needs, with all of its shards.

    Attributes:
        pool: Its name in the cluster file.
        figures: By the part of their id after the pool's name, in one order for all pools.
        usable_hours: How long a Capacity Block or training plan is of use; None for the others.
    """

    pool: str
    figures: Mapping[str, Figure]
    usable_hours: Figure | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreedLimit:
    """What AWS has granted of a quota above what it publishes, as the file says.

    Attributes:
        code: Code of the quota in Service Quotas.
        value: How many.
        reference: The case or agreement that grants them.
    """

    code: str
    value: int
    reference: str


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaNeed:
    """A service quota, held against what a cluster needs of it.

    Attributes:
        code: Its code in Service Quotas; None where it has to be looked up there by its name.
        name: Its name there.
        needed: What the cluster needs.
        default: How many it is before AWS raises it; None where that is not known.
        most: How many at most AWS publishes that it grants; None where it publishes none.
        agreed: What AWS has granted of it, as the file says; None where it says nothing.
        state: Whether the default holds it, AWS has to be asked, what is agreed holds it, more
            than AWS publishes would have to be granted, or that cannot be said offline.
    """

    code: str | None
    name: str
    needed: Figure
    default: int | None
    most: int | None
    agreed: AgreedLimit | None
    state: NeedState


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterNeeds:
    """What a cluster needs at its full size.

    Attributes:
        name: The cluster.
        region: Its Region.
        pools: In file order.
        totals: Sums of the pools' figures, by the same keys, and what only the whole has.
        quotas: Those that it needs something of.
    """

    name: str
    region: str
    pools: tuple[PoolNeeds, ...]
    totals: Mapping[str, Figure]
    quotas: tuple[QuotaNeed, ...]
