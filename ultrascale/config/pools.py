"""`pools[]`: sets of identical nodes."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from ultrascale import catalog
from ultrascale.catalog import kubernetes
from ultrascale.catalog.provisioners import AUTO_MODE, KARPENTER, Provisioned, Provisioner
from ultrascale.config._base import (
    Distinct,
    LabelKey,
    LabelValue,
    Model,
    WrongValueError,
    dns_label,
)
from ultrascale.config._tags import TagKey, TagValue
from ultrascale.config.network import Network
from ultrascale.config.purchase import OnDemand, Purchase
from ultrascale.errors import CatalogError

NODE_TYPE = "node-type"
"""Label whose value is the pool's name, unless the pool's ``labels`` say otherwise."""

FALLBACK_SUFFIX = "-on-demand"
"""Behind a pool's name, the name of the NodePool that is tried where Spot is short."""

TWO_OWNERS = (
    "EKS Auto Mode and self-managed Karpenter in one cluster (this product's limit: "
    "both own the karpenter.sh resources)"
)

Role = Literal["system", "reserved", "burst"]


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


InstanceType = Annotated[str, AfterValidator(_in_catalog)]
Count = Annotated[int, Field(le=kubernetes.NODES_PER_CLUSTER)]


def _role(stated: Mapping[str, object]) -> Role:
    return "system" if stated["name"] == "system" else "burst"


class Nodes(Model):
    """How many nodes each shard of a pool has.

    Attributes:
        min: Fewest, for a pool that scales.
        max: Most, for a pool that scales.
        static: A fixed count that is kept whether pods run or not.
    """

    min: Annotated[int, Field(ge=0)] = 0
    max: Count | None = None
    static: Count | None = None

    @property
    def are_counted(self) -> bool:
        """Whether the file states the count that bounds the pool: a rule refuses it otherwise."""
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
    value: LabelValue
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] = "NoSchedule"


class Pool(Provisioned, Model):
    """A set of identical nodes.

    Attributes:
        name: Unique in the cluster.
        role: Decides disruption rules, weights and labels.
        instance_types: EC2 names, in order of preference.
        provisioner: What launches the nodes.
        purchase: How they are paid for.
        zones: Zones of the pool; empty for all of the network's, see `zones_of`.
        nodes: Counts of each shard.
        shards: Number of equal pools that this one stands for.
        placement_group: Whether the nodes share a cluster placement group.
        efa: Which EFA cards get an interface.
        deep_health_checks: Whether HyperPod stresses a node before it takes work.
        labels: Node labels that are added, or replace ours of the same key.
        taints: Node taints that are added; jobs of the pool tolerate them by themselves.
        tags: EC2 tags of the nodes' instances and volumes, such as for cost allocation.
    """

    name: Annotated[str, dns_label(50)]
    role: Role = Field(default_factory=_role)
    instance_types: Annotated[Distinct[InstanceType], Field(min_length=1)]
    provisioner: Provisioner
    purchase: Purchase = Field(default_factory=OnDemand)
    zones: Annotated[Distinct[str], Field(min_length=1)] = ()
    nodes: Nodes
    shards: Annotated[int, Field(ge=1, le=kubernetes.NODES_PER_CLUSTER)] = 1
    placement_group: bool = False
    efa: Literal["auto", "all", "none"] = "auto"
    deep_health_checks: bool = False
    labels: Mapping[LabelKey, LabelValue] = Field(default_factory=dict[str, str])
    taints: tuple[Taint, ...] = ()
    tags: Mapping[TagKey, TagValue] = Field(default_factory=dict[str, str])

    @property
    def node_type(self) -> str:
        """Value of the label `node-type` on the pool's nodes."""
        return self.labels.get(NODE_TYPE, self.name)


def zones_of(pool: Pool, network: Network) -> tuple[str, ...]:
    """Return the zones of ``pool``: those of the network where the file names none."""
    return pool.zones or network.zones


def node_pools_of(pools: Iterable[Pool]) -> Provisioner:
    """Return the provisioner of NodePools that suits a cluster of ``pools``."""
    return AUTO_MODE if any(pool.is_auto_mode for pool in pools) else KARPENTER


def could_have_efa(pool: Pool) -> bool:
    """Return whether every type takes EFA interfaces and some type has accelerators."""
    specs = [catalog.lookup(name) for name in pool.instance_types]
    taken = all(spec.knows("efa_cards") and spec.efa_cards for spec in specs)
    return taken and any(spec.accelerator for spec in specs)


def has_efa(pool: Pool, network: Network) -> bool:
    """Return whether the nodes of ``pool`` get EFA interfaces."""
    one = len(pool.instance_types) == len(zones_of(pool, network)) == 1
    return pool.efa == "all" or (pool.efa == "auto" and one and could_have_efa(pool))
