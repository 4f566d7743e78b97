"""SageMaker HyperPod: cluster of the pools, chart, task governance, operator and metrics."""

from collections.abc import Mapping

from aws_cdk import CfnOutput

from ultrascale.parts.hyperpod import Plan
from ultrascale.plan.stacks import LayerId, StackName
from ultrascale_constructs.addon import Addon
from ultrascale_constructs.hyperpod.addons import HyperPodObservability, TaskGovernance
from ultrascale_constructs.hyperpod.chart import HyperPodChart
from ultrascale_constructs.hyperpod.cluster import HyperPodCluster
from ultrascale_stacks.cluster import Builder, ClusterStacks, LayerStack
from ultrascale_stacks.platform import PlatformStack


class TrainingOperatorStack(LayerStack):
    """Stack of the training operator's add-on, apart from the stack of its nodes.

    Before a training plan starts there is no node, so this stack would fail.
    """

    def __init__(self, cluster: ClusterStacks, name: StackName) -> None:
        super().__init__(cluster, name)
        addon = cluster.part(Plan).cluster.training_operator
        assert addon is not None, "a cluster without the operator has no such stack"
        Addon(self, addon.name, plan=addon, cluster_name=cluster.plan.name)


class GovernanceStack(LayerStack):
    """Stack of the task governance add-on, which brings the queues, and of their configuration."""

    def __init__(self, cluster: ClusterStacks, name: StackName) -> None:
        super().__init__(cluster, name)
        governance = cluster.part(Plan).cluster.governance
        assert governance is not None, "a cluster without task governance has no such stack"
        addon = Addon(
            self, governance.addon.name, plan=governance.addon, cluster_name=cluster.plan.name
        )
        queues = TaskGovernance(
            self,
            "TaskGovernance",
            plan=governance,
            hyperpod_cluster_arn=cluster.get(HyperPodStack).hyperpod_cluster_arn,
        )
        queues.node.add_dependency(addon)


class HyperPodObservabilityStack(LayerStack):
    """Stack of HyperPod's observability add-on and its workspace, apart from other metrics.

    Before a training plan starts there is no node, so this stack would fail; the alarms' stack must
    not.
    """

    def __init__(self, cluster: ClusterStacks, name: StackName) -> None:
        super().__init__(cluster, name)
        addon = cluster.part(Plan).metrics
        assert addon is not None, "a cluster without its metrics has no such stack"
        HyperPodObservability(
            self,
            "HyperPod",
            plan=addon,
            cluster_name=cluster.plan.name,
            key_arn=cluster.plan.key("logs"),
        )


class HyperPodChartStack(LayerStack):
    """Stack that installs AWS's HyperPod chart."""

    def __init__(self, cluster: ClusterStacks, name: StackName) -> None:
        super().__init__(cluster, name)
        HyperPodChart(self, "Chart", plan=cluster.part(Plan).chart_release, cluster=cluster.context)


class HyperPodStack(LayerStack):
    """Stack of the HyperPod cluster with its instance groups; an EKS cluster can have only one."""

    def __init__(self, cluster: ClusterStacks, name: StackName) -> None:
        super().__init__(cluster, name)
        plan, hyperpod = cluster.plan, cluster.part(Plan).cluster
        placeholders = cluster.placeholders("storage")
        resource = HyperPodCluster(
            self,
            "HyperPod",
            plan=hyperpod,
            region=plan.region,
            cluster=cluster.context,
            subnet_ids={
                group.name: cluster.network.ids_of(group.subnets) for group in hyperpod.groups
            },
            file_systems={
                lustre.name: (placeholders[lustre.dns_name], placeholders[lustre.mount_name])
                for lustre in plan.storage.lustre
            }
            | {
                each.name: (each.dns_name, each.mount_name) for each in plan.storage.existing_lustre
            },
        )
        self.hyperpod_cluster_arn = resource.arn  # ARN of the HyperPod cluster
        self.export_value(resource.arn)
        CfnOutput(self, "HyperPodClusterArn", value=resource.arn, description="HyperPod cluster")


STACKS: Mapping[LayerId, Builder] = {
    "hyperpod-chart": HyperPodChartStack,
    "hyperpod-groups": HyperPodStack,
    "governance": GovernanceStack,
    "teams": lambda cluster, name: PlatformStack(
        cluster,
        name,
        charts=cluster.charts.teams,
        placeholders=cluster.placeholders("storage", "image-cache"),
    ),
    "training-operator": TrainingOperatorStack,
    "hyperpod-metrics": HyperPodObservabilityStack,
}
