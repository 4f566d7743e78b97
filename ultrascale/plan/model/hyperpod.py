"""SageMaker HyperPod: its cluster, instance groups and task governance."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from ultrascale.plan.model.addons import AddonPlan
from ultrascale.plan.model.network import SubnetPlan
from ultrascale.plan.model.pool import Taint

Sharing = Literal["Lend", "DontLend", "LendAndBorrow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceGroupPlan:
    """An instance group of the HyperPod cluster: a pool, or one shard of it.

    Attributes:
        name: Its name.
        instance_types: In order of preference, with SageMaker's prefix.
        nodes: Instances that it is to have.
        training_plan: ARN of the plan that pays for them; None for On-Demand.
        deep_health_checks: Checks of a new instance before it takes work, in HyperPod's words.
        labels: Node labels.
        taints: Node taints.
        zones: Zones of its subnets.
        subnets: Subnets of its instances, in the order in which ranges were added.
        addresses: Single IPv4 addresses that each instance takes.
        volume_gib: Size of the second EBS volume, which holds images and containers, in GiB.
        volume_key: ARN of the KMS key of both volumes; None: SageMaker's own.
        mounts: Where each instance mounts file systems of its zone, of as many as a group takes.
    """

    name: str
    instance_types: tuple[str, ...]
    nodes: int
    training_plan: str | None
    deep_health_checks: tuple[str, ...]
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    zones: tuple[str, ...]
    subnets: tuple[SubnetPlan, ...]
    addresses: int
    volume_gib: int
    volume_key: str | None
    mounts: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamPlan:
    """Share of the HyperPod nodes that a team may use.

    Attributes:
        name: Its name.
        quota: Name of its quota.
        namespace: Where its jobs run. Task governance makes it.
        fair_share_weight: Share of idle nodes relative to the other teams, 0 to 100.
        nodes: Nodes that are its own, by instance type with SageMaker's prefix.
        sharing: Whether it lends what it leaves idle, and borrows what others do.
        borrow_limit_percent: How far it may go beyond its own nodes; None unless it borrows.
    """

    name: str
    quota: str
    namespace: str
    fair_share_weight: int
    nodes: Mapping[str, int]
    sharing: Sharing
    borrow_limit_percent: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GovernancePlan:
    """HyperPod task governance.

    Attributes:
        name: Name of the scheduler configuration.
        addon: The EKS add-on that brings the queues.
        weights: Weight of each PriorityClass in the queues, highest first.
        teams: The teams.
    """

    name: str
    addon: AddonPlan
    weights: Mapping[str, int]
    teams: tuple[TeamPlan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperPodPlan:
    """The HyperPod cluster behind the pools of provisioner ``hyperpod``.

    Attributes:
        name: Its name.
        node_recovery: ``Automatic``, or ``None`` as text.
        groups: Its instance groups.
        governance: Sharing between teams; None leaves it out.
        training_operator: The EKS add-on of the training operator; None leaves it out.
        tags: Tags beside those of the stack.
    """

    name: str
    node_recovery: str
    groups: tuple[InstanceGroupPlan, ...]
    governance: GovernancePlan | None
    training_operator: AddonPlan | None = None
    tags: Mapping[str, str] = field(default_factory=dict[str, str])
