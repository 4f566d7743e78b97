"""`pools[]`: sets of identical nodes."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from ultrascale import catalog
from ultrascale.catalog import kubernetes, matrix
from ultrascale.config._base import LabelKey, LabelValue, Model, WrongValueError, dns_label
from ultrascale.config._tags import TagKey, TagValue
from ultrascale.config.purchase import OnDemand, Purchase
from ultrascale.errors import CatalogError

NODE_TYPE = "node-type"
"""Label whose value is the pool's name, unless the pool's ``labels`` say otherwise."""

FALLBACK_SUFFIX = "-on-demand"
"""Behind a pool's name, the name of the NodePool that is tried where Spot is short."""

RESERVED_NAMES = frozenset(
    {
        "access",
        "addons",
        "backend",
        "cluster",
        "default",
        "governance",
        "hyperpod-chart",
        "hyperpod-groups",
        "hyperpod-metrics",
        "image-cache",
        "images",
        "jobs",
        "karpenter",
        "network",
        "node-addons",
        "node-pools",
        "nodes",
        "observability",
        "pipeline",
        "pipeline-gate",
        "platform",
        "registry",
        "scaling",
        "scheduling",
        "storage",
        "system-node-pools",
        "teams",
    }
)
"""Names that the cluster's own stacks and objects have; a pool's stack would replace theirs."""

Provisioner = matrix.Provisioner
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


class Pool(Model):
    """A set of identical nodes.

    Attributes:
        name: Unique in the cluster.
        role: Decides disruption rules, weights and labels.
        instance_types: EC2 names, in order of preference.
        provisioner: What launches the nodes.
        purchase: How they are paid for.
        zones: Zones of the pool; all of the network's where the file names none.
        nodes: Counts of each shard.
        shards: Number of equal pools that this one stands for.
        placement_group: Whether the nodes share a cluster placement group.
        efa: Which EFA cards get an interface.
        deep_health_checks: Whether HyperPod stresses a node before it takes work.
        labels: Node labels that are added, or replace ours of the same key.
        taints: Node taints that are added; jobs of the pool tolerate them by themselves.
        tags: EC2 tags of the nodes' instances and volumes, such as for cost allocation.
    """

    derived: ClassVar[frozenset[str]] = frozenset({"role", "zones"})

    name: Annotated[str, dns_label(50)]
    role: Role
    instance_types: Annotated[tuple[InstanceType, ...], Field(min_length=1)]
    provisioner: Provisioner
    purchase: Annotated[Purchase, Field(discriminator="option")] = OnDemand()
    zones: Annotated[tuple[str, ...], Field(min_length=1)]
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

    @classmethod
    def derive(cls, fields: dict[str, object], known: Mapping[str, object]) -> None:
        """Fill ``role`` from the name and ``zones`` from the network."""
        if "role" in fields and fields["role"] is None and "name" in fields:
            fields["role"] = "system" if fields["name"] == "system" else "burst"
        if "zones" in fields and fields["zones"] is None and "network_zones" in known:
            fields["zones"] = known["network_zones"]
