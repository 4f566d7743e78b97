"""`pools[]`: sets of identical nodes."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, PrivateAttr

from ultrascale import catalog
from ultrascale.catalog import kubernetes
from ultrascale.catalog.provisioners import (
    AUTO_MODE,
    KARPENTER,
    Provisioned,
    Provisioner,
    installed_provisioners,
)
from ultrascale.catalog.recorded import RecordedNodes
from ultrascale.config._base import Model
from ultrascale.config._values import (
    AtLeastOne,
    LabelKey,
    LabelValue,
    TagKey,
    TagValue,
    WrongValueError,
    dns_label,
    in_schema,
    known_in_schema,
)
from ultrascale.config.network import Network
from ultrascale.config.purchase import CapacityBlock, Odcr, OnDemand, Purchase, Spot, TrainingPlan
from ultrascale.errors import CatalogError

NODE_TYPE = "node-type"
"""Label with the pool's name as value, unless the pool's ``labels`` say otherwise."""

FALLBACK_SUFFIX = "-on-demand"
"""Suffix of the second NodePool's name, which is tried where Spot is short."""

TWO_OWNERS = (
    "EKS Auto Mode and self-managed Karpenter in one cluster (this product's limit: "
    "both own the karpenter.sh resources)"
)

# One for all: pydantic would copy a default for each pool.
_NO_FACTS = RecordedNodes()
Role = Literal["system", "reserved", "burst"]
Repair = Literal["none", "reboot", "replace"]


def _in_catalog(value: str) -> str:
    try:
        return catalog.lookup(value).instance_type
    except CatalogError as error:
        if value.startswith("ml."):
            plain = value.removeprefix("ml.")
            raise WrongValueError(
                "an instance type with SageMaker's prefix", f"write {plain}"
            ) from error
        raise WrongValueError(str(error), complete=True) from error


InstanceType = Annotated[
    str, AfterValidator(_in_catalog), known_in_schema(lambda: catalog.INSTANCE_TYPES)
]
# A rule refuses a pool that never has a node.
Count = Annotated[int, Field(le=kubernetes.NODES_PER_CLUSTER), in_schema(minimum=1)]


def _role(stated: Mapping[str, object]) -> Role:
    return "system" if stated["name"] == "system" else "burst"


class Nodes(Model):
    """Number of nodes of each shard of a pool."""

    min: Annotated[int, Field(ge=0, le=kubernetes.NODES_PER_CLUSTER)] = 0
    """Fewest nodes of a pool that scales."""

    max: Count | None = None
    """Most nodes of a pool that scales. Default: `static` is required."""

    static: Count | None = None
    """Fixed number of nodes; HyperPod always needs it, NodePools need `role: reserved` beside it.

    Default: the pool scales.
    """

    @property
    def are_counted(self) -> bool:
        """Whether the file states the count that bounds the pool; a rule refuses it otherwise."""
        return self.max is not None or self.static is not None

    @property
    def upper_count(self) -> tuple[str, int]:
        """Key and value of the count that bounds the pool; 0 where the file states none."""
        key, count = ("max", self.max) if self.static is None else ("static", self.static)
        return key, count or 0

    @property
    def lowest(self) -> int:
        """Fewest nodes that the pool ever has."""
        return self.min if self.static is None else self.static

    @property
    def highest(self) -> int:
        """Most nodes that the pool ever has."""
        count = self.max if self.static is None else self.static
        # A rule of `Nodes` refuses a file that states neither.
        assert count is not None, "nodes states neither max nor static"
        return count


class Taint(Model):
    """A taint of a pool's nodes beside those that follow from it, in Kubernetes' own words."""

    key: LabelKey
    """Key of the taint, with a domain of your own or none."""

    value: LabelValue
    """Value of the taint."""

    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"
    """Effect on pods that do not tolerate the taint."""


def _installed(provisioner: Provisioner) -> Provisioner:
    known = installed_provisioners()
    if provisioner not in known:
        wrong = "a provisioner of a part that is not installed"
        raise WrongValueError(wrong, f"install it, or write one of {', '.join(known)}")
    return provisioner


class Pool(Provisioned, Model):
    """A set of identical nodes."""

    name: Annotated[str, dns_label(50)]
    """DNS label, unique. It is also the node label `node-type` and part of the stack's name."""

    role: Role = Field(default_factory=_role)
    """Use of the nodes, which decides disruption rules, weights and labels.

    Default: `system` for the pool of that name, else `burst`.
    """

    instance_types: AtLeastOne[InstanceType]
    """EC2 instance types, in order of preference. Spot on a node group needs at least three of one
    size; `role: system` takes none with accelerators.
    """

    provisioner: Annotated[Provisioner, AfterValidator(_installed)]
    """Controller that launches the nodes."""

    purchase: Purchase = Field(default_factory=OnDemand)
    """Purchase option of the nodes. Default: on-demand."""

    zones: AtLeastOne[str] = ()
    """Zones of the pool; one for EFA, a Capacity Block or a training plan.

    Default: all of `network.zones`.
    """

    nodes: Nodes
    """Number of nodes of each shard."""

    shards: Annotated[int, Field(ge=1, le=kubernetes.NODES_PER_CLUSTER)] = 1
    """Number of equal pools, named `NAME-1` and so on."""

    placement_group: bool = False
    """Put the nodes into one cluster placement group."""

    efa: Literal["auto", "all", "none"] = "auto"
    """EFA interfaces: `all` cards, `none`, or `auto`: all cards where the pool has accelerators,
    one type and one zone. `auto` is refused where several types, or zones, would give them up.
    """

    deep_health_checks: bool = False
    """HyperPod only: stress each node for one to two hours before it takes work."""

    repair: Repair | None = None
    """Repair of a broken node: `none` leaves it to you, `reboot` reboots it where that may heal
    it, `replace` replaces it. [By provisioner](ultra-scale.md#repair).

    Default: `replace` on EKS Auto Mode, on managed node groups without reserved capacity, and on
    HyperPod by its `node_recovery`; else `none`.
    """

    labels: Mapping[LabelKey, LabelValue] = Field(default_factory=dict[str, str])
    """Further node labels; `node-type` replaces ours. Default: none."""

    taints: tuple[Taint, ...] = ()
    """Further node taints. Jobs of the pool tolerate them by themselves. Not on system pools, nor
    beside deep health checks.

    Default: none.
    """

    tags: Mapping[TagKey, TagValue] = Field(default_factory=dict[str, str])
    """EC2 tags of the instances and their volumes, such as for cost allocation; `Name` replaces
    ours.

    Default: none.
    """

    _recorded: RecordedNodes = PrivateAttr(default_factory=lambda: _NO_FACTS)

    def count_with(self, recorded: RecordedNodes) -> None:
        """Answer by the facts that the file records of the nodes, where it does."""
        self._recorded = recorded

    @property
    def recorded(self) -> RecordedNodes:
        """Facts that the file records of the nodes."""
        return self._recorded

    @property
    def specs(self) -> tuple[catalog.InstanceType, ...]:
        """Facts of its instance types, the recorded ones before the catalog's.

        Raises:
            CatalogError: The catalog has no such type.
        """
        return tuple(map(self._recorded.spec, self.instance_types))

    @property
    def is_reserved(self) -> bool:
        """Whether its nodes use capacity that the account may not get again once given back."""
        bought = isinstance(self.purchase, (Odcr, CapacityBlock, TrainingPlan))
        return bought or self.role == "reserved"

    @property
    def node_type(self) -> str:
        """Value of the label `node-type` on the pool's nodes."""
        return self.labels.get(NODE_TYPE, self.name)


def zones_of(pool: Pool, network: Network) -> tuple[str, ...]:
    """Return the zones of ``pool``: the network's where the file names none."""
    if pool.zones or network.vpc is None:
        return pool.zones or network.zones
    known = [name for name in pool.instance_types if name in catalog.INSTANCE_TYPES]
    return network.zones_for(accelerated=any(catalog.lookup(name).accelerator for name in known))


def node_pools_of(pools: Iterable[Pool]) -> Provisioner:
    """Return the provisioner of NodePools that suits a cluster of ``pools``."""
    return AUTO_MODE if any(pool.is_auto_mode for pool in pools) else KARPENTER


def could_have_efa(pool: Pool) -> bool:
    """Return whether every type takes EFA interfaces and a type has accelerators."""
    taken = all(map(has_efa_cards, pool.specs))
    return taken and any(spec.accelerator for spec in pool.specs)


def has_efa_cards(spec: catalog.InstanceType) -> bool:
    """Return whether an instance type takes EFA interfaces."""
    return spec.knows("efa_cards") and bool(spec.efa_cards)


def loses_efa(pool: Pool, network: Network) -> Literal["types", "zones"] | None:
    """Return the key that keeps EFA from accelerated nodes of a silent file; None without one."""
    specs = pool.specs
    if pool.efa != "auto" or not any(spec.accelerator and has_efa_cards(spec) for spec in specs):
        return None
    if len(specs) > 1:
        return "types"
    return "zones" if len(zones_of(pool, network)) > 1 else None


def spans_nodes(pool: Pool) -> bool:
    """Return whether a pool is likely bought for jobs over several nodes, which need EFA.

    These are reserved nodes, and types with EFA on more than one network card. On Spot, which EC2
    takes node by node, no such job lasts.
    """
    if isinstance(pool.purchase, Spot):
        return False
    cards = filter(has_efa_cards, pool.specs)
    return pool.is_reserved or any(len(spec.efa_cards) > 1 for spec in cards)


def has_efa(pool: Pool, network: Network) -> bool:
    """Return whether the nodes of ``pool`` get EFA interfaces."""
    one = len(pool.instance_types) == len(zones_of(pool, network)) == 1
    return pool.efa == "all" or (pool.efa == "auto" and one and could_have_efa(pool))
