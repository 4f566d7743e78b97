"""SageMaker HyperPod: the cluster of its pools, its chart, governance, operator and metrics."""

from collections.abc import Mapping

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from ultrascale.parts.hyperpod import Plan
from ultrascale.plan.model import ClusterPlan
from ultrascale.plan.stacks import LayerId, StackName
from ultrascale_constructs.addon import Addon
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.hyperpod.chart import HyperPodChart
from ultrascale_constructs.hyperpod.cluster import HyperPodCluster
from ultrascale_constructs.hyperpod.observability import HyperPodObservability
from ultrascale_constructs.hyperpod.task_governance import TaskGovernance
from ultrascale_constructs.network import Network
from ultrascale_stacks.builders import Builder, ClusterStacks
from ultrascale_stacks.deployment import stack_properties
from ultrascale_stacks.platform import PlatformStack


class TrainingOperatorStack(Stack):
    """Defines the add-on, in a stack apart from its nodes.

    Before a training plan starts there is no node, and this stack fails.
    """

    def __init__(self, scope: Construct, id: str, *, plan: ClusterPlan) -> None:
        super().__init__(scope, id, **stack_properties(plan))
        addon = _own(plan).cluster.training_operator
        assert addon is not None, "a cluster without the operator has no such stack"
        Addon(self, addon.name, plan=addon, cluster_name=plan.name)


class GovernanceStack(Stack):
    """Defines the add-on that brings the queues, then their configuration."""

    def __init__(
        self, scope: Construct, id: str, *, plan: ClusterPlan, hyperpod_cluster_arn: str
    ) -> None:
        super().__init__(scope, id, **stack_properties(plan))
        governance = _own(plan).cluster.governance
        assert governance is not None, "a cluster without task governance has no such stack"
        addon = Addon(self, governance.addon.name, plan=governance.addon, cluster_name=plan.name)
        queues = TaskGovernance(
            self, "TaskGovernance", plan=governance, hyperpod_cluster_arn=hyperpod_cluster_arn
        )
        queues.node.add_dependency(addon)


class HyperPodObservabilityStack(Stack):
    """Defines the add-on and its workspace, in a stack apart from other metrics and alarms.

    Before a training plan starts there is no node, and this stack fails; the alarms' must not.
    """

    def __init__(self, scope: Construct, id: str, *, plan: ClusterPlan) -> None:
        super().__init__(scope, id, **stack_properties(plan))
        addon = _own(plan).metrics
        assert addon is not None, "a cluster without its metrics has no such stack"
        HyperPodObservability(
            self, "HyperPod", plan=addon, cluster_name=plan.name, key_arn=plan.key("logs")
        )


class HyperPodChartStack(Stack):
    """Installs AWS's chart."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: ClusterPlan,
        cluster: ClusterContext,
    ) -> None:
        super().__init__(scope, id, **stack_properties(plan))
        HyperPodChart(self, "Chart", plan=_own(plan).chart_release, cluster=cluster)


class HyperPodStack(Stack):
    """Defines the HyperPod cluster with all its instance groups; an EKS cluster can have only one.

    Attributes:
        hyperpod_cluster_arn: ARN of the HyperPod cluster.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: ClusterPlan,
        network: Network,
        cluster: ClusterContext,
        placeholders: Mapping[str, str],
    ) -> None:
        super().__init__(scope, id, **stack_properties(plan))
        hyperpod = _own(plan).cluster
        resource = HyperPodCluster(
            self,
            "HyperPod",
            plan=hyperpod,
            region=plan.region,
            cluster=cluster,
            subnet_ids={group.name: network.ids_of(group.subnets) for group in hyperpod.groups},
            file_systems={
                lustre.name: (placeholders[lustre.dns_name], placeholders[lustre.mount_name])
                for lustre in plan.storage.lustre
            }
            | {
                each.name: (each.dns_name, each.mount_name) for each in plan.storage.existing_lustre
            },
        )
        self.hyperpod_cluster_arn = resource.arn
        self.export_value(resource.arn)
        CfnOutput(self, "HyperPodClusterArn", value=resource.arn, description="HyperPod cluster")


def _own(plan: ClusterPlan) -> Plan:
    own = plan.part(Plan)
    assert own is not None, "a cluster without HyperPod has no such stack"
    return own


def _hyperpod_chart(cluster: ClusterStacks, name: StackName) -> Stack:
    return HyperPodChartStack(cluster.app, name, plan=cluster.plan, cluster=cluster.context)


def _hyperpod(cluster: ClusterStacks, name: StackName) -> Stack:
    return HyperPodStack(
        cluster.app,
        name,
        plan=cluster.plan,
        network=cluster.network,
        cluster=cluster.context,
        placeholders=cluster.placeholders("storage"),
    )


def _governance(cluster: ClusterStacks, name: StackName) -> Stack:
    arn = cluster.get(HyperPodStack).hyperpod_cluster_arn
    return GovernanceStack(cluster.app, name, plan=cluster.plan, hyperpod_cluster_arn=arn)


def _training_operator(cluster: ClusterStacks, name: StackName) -> Stack:
    return TrainingOperatorStack(cluster.app, name, plan=cluster.plan)


def _hyperpod_metrics(cluster: ClusterStacks, name: StackName) -> Stack:
    return HyperPodObservabilityStack(cluster.app, name, plan=cluster.plan)


def _teams(cluster: ClusterStacks, name: StackName) -> Stack:
    return PlatformStack(
        cluster.app,
        name,
        plan=cluster.plan,
        cluster=cluster.context,
        charts=cluster.charts.teams,
        placeholders=cluster.placeholders("storage", "image-cache"),
    )


STACKS: Mapping[LayerId, Builder] = {
    "hyperpod-chart": _hyperpod_chart,
    "hyperpod-groups": _hyperpod,
    "governance": _governance,
    "teams": _teams,
    "training-operator": _training_operator,
    "hyperpod-metrics": _hyperpod_metrics,
}
