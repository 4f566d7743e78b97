"""SageMaker HyperPod: its cluster, instance groups and task governance."""

from collections.abc import Mapping
from typing import Literal

from msgspec import field

from ultrascale.frozen import Frozen
from ultrascale.plan.model.addons import AddonPlan
from ultrascale.plan.model.network import SubnetPlan
from ultrascale.plan.model.pool import Taint

Sharing = Literal["Lend", "DontLend", "LendAndBorrow"]


class InstanceGroupPlan(Frozen):
    """An instance group of the HyperPod cluster: a pool, or one shard of it."""

    name: str  # Its name
    instance_types: tuple[str, ...]  # In order of preference, with SageMaker's prefix
    nodes: int  # Instances that it is to have
    training_plan: str | None  # ARN of the plan that pays for them; None for On-Demand
    # Checks of a new instance before it takes work, in HyperPod's words.
    deep_health_checks: tuple[str, ...]
    labels: Mapping[str, str]  # Node labels
    taints: tuple[Taint, ...]  # Node taints
    zones: tuple[str, ...]  # Zones of its subnets
    # Subnets of its instances, in the order in which ranges were added.
    subnets: tuple[SubnetPlan, ...]
    addresses: int  # Single IPv4 addresses that each instance takes
    volume_gib: int  # Size of the second EBS volume, which holds images and containers, in GiB
    volume_key: str | None  # ARN of the KMS key of both volumes; None: SageMaker's own
    # Where each instance mounts file systems of its zone, of as many as a group takes.
    mounts: Mapping[str, str]


class TeamPlan(Frozen):
    """Share of the HyperPod nodes that a team may use."""

    name: str  # Its name
    quota: str  # Name of its quota
    namespace: str  # Where its jobs run. Task governance makes it.
    fair_share_weight: int  # Share of idle nodes relative to the other teams, 0 to 100
    nodes: Mapping[str, int]  # Nodes that are its own, by instance type with SageMaker's prefix
    sharing: Sharing  # Whether it lends what it leaves idle, and borrows what others do
    # How far it may go beyond its own nodes; None unless it borrows.
    borrow_limit_percent: int | None


class GovernancePlan(Frozen):
    """HyperPod task governance."""

    name: str  # Name of the scheduler configuration
    addon: AddonPlan  # The EKS add-on that brings the queues
    weights: Mapping[str, int]  # Weight of each PriorityClass in the queues, highest first
    teams: tuple[TeamPlan, ...]  # The teams


class HyperPodPlan(Frozen):
    """The HyperPod cluster behind the pools of provisioner ``hyperpod``."""

    name: str  # Its name
    node_recovery: str  # ``Automatic``, or ``None`` as text
    groups: tuple[InstanceGroupPlan, ...]  # Its instance groups
    governance: GovernancePlan | None  # Sharing between teams; None leaves it out
    # The EKS add-on of the training operator; None leaves it out.
    training_operator: AddonPlan | None = None
    # Tags beside those of the stack.
    tags: Mapping[str, str] = field(default_factory=dict[str, str])
