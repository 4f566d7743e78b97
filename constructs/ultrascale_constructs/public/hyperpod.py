"""SageMaker HyperPod clusters on an EKS cluster."""

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from aws_cdk import aws_ec2 as ec2
from constructs import Construct, DependencyGroup, IDependable
from msgspec.structs import replace

from ultrascale import config
from ultrascale.documents import mapping, sequence
from ultrascale.frozen import Frozen
from ultrascale.parts.hyperpod.chart import plan_hyperpod_chart
from ultrascale.parts.hyperpod.plan import hyperpod_with_groups, known_version, plan_instance_group
from ultrascale.parts.hyperpod.section import HyperPod
from ultrascale.plan.pools.pool import plan_pool
from ultrascale_constructs.hyperpod import cluster as hyperpod
from ultrascale_constructs.public.arguments import Arguments, defining
from ultrascale_constructs.public.cluster import (
    AnyCluster,
    context_of,
    ready_of,
    stated_name,
    version_of,
)
from ultrascale_constructs.public.purchase import Taint, TrainingPlan, taint_keys

# HyperPod takes DNS labels: no longer and no other names.
_NAME = re.compile("[a-z]([-a-z0-9]{0,38}[a-z0-9])?")


class InstanceGroup(Frozen):
    """A group of equal instances of a HyperPod cluster.

    Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ClusterInstanceGroupSpecification.html
    """

    name: str  # Its name: a DNS label of at most 50 characters
    instance_type: str  # EC2 instance type without the prefix ``ml.``, such as ``p5.48xlarge``
    nodes: int  # Its fixed number of instances
    # Private subnets of its instances: of one zone for EFA and training plans.
    subnets: Sequence[ec2.ISubnet]
    # Training plan that its instances are of; None for On-Demand.
    training_plan: TrainingPlan | None = None
    # Whether each instance is stressed for one to two hours before it takes work.
    deep_health_checks: bool = False
    # EFA interfaces: ``auto`` where the type has them and the subnets are of one zone. SageMaker
    # attaches them itself.
    efa: Literal["auto", "all", "none"] = "auto"
    labels: Mapping[str, str] | None = None  # Further labels of its nodes
    taints: Sequence[Taint] = ()  # Further taints of its nodes


class HyperPodCluster(Construct):
    """Defines a HyperPod cluster on an EKS cluster, with its role, lifecycle script and groups.

    HyperPod needs AWS's Helm chart in the EKS cluster before its first instance joins: a build in
    the private subnets installs it, unless `install_chart` is false, and waits until its operators
    run, on nodes that already exist or that `after` brings. The EKS cluster's access
    configuration needs the mode `API` or `API_AND_CONFIG_MAP`, and an EKS cluster has one HyperPod
    cluster.

    Sources:
        https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-prerequisites.html
        https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-install-packages-using-helm-chart.html
    """

    arn: str
    """ARN of the HyperPod cluster."""
    name: str
    """Its name."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: AnyCluster,
        subnets: Sequence[ec2.ISubnet],
        instance_groups: Sequence[InstanceGroup],
        name: str | None = None,
        node_recovery: Literal["automatic", "none"] = "automatic",
        install_chart: bool = True,
        controller_node_selector: Mapping[str, str] | None = None,
        after: Sequence[IDependable] = (),
    ) -> None:
        """Define the HyperPod cluster.

        Args:
            scope: Parent, in a stack with a Region.
            id: Construct id.
            cluster: The EKS cluster; another one replaces the HyperPod cluster.
            subnets: Private subnets of the EKS cluster, for the build that installs the chart; the
                first is the HyperPod cluster's own, and another one replaces it.
            instance_groups: Its instance groups.
            name: Its name, a DNS label of at most 40 characters. Default: the EKS cluster's name.
            node_recovery: ``automatic`` reboots and replaces faulty instances.
            install_chart: Whether AWS's Helm chart is installed.
            controller_node_selector: Labels of the nodes that the chart's controllers run on, such
                as ``{"ultrascale.dev/role": "system"}`` beside a `NodePool` of that role. Default:
                any nodes.
            after: Constructs that must be there before, such as the `NodePool` whose nodes the
                chart's controllers run on.

        Raises:
            ArgumentError: Arguments are wrong; one line for each.
        """
        super().__init__(scope, id)
        arguments = Arguments(self)
        arguments.lists(subnets=subnets, instance_groups=instance_groups, after=after)
        arguments.subnets("subnets", subnets)
        arguments.values("instance_groups", instance_groups, InstanceGroup)
        arguments.flags(install_chart=install_chart)
        _check_selector(arguments, controller_node_selector)
        _check_after(arguments, after)
        arguments.stop()
        for number, group in enumerate(instance_groups):
            _check(arguments, group, f"instance_groups[{number}].")
        arguments.stop()
        ids = tuple(subnet.subnet_id for subnet in subnets)
        context = context_of(cluster, arguments, "vpc", "security_group_id", private_subnet_ids=ids)
        zones = arguments.zones(subnets)
        if not instance_groups:
            arguments.refuse("instance_groups", "no group", "name at least one")
        if arguments.region is None:
            wrong = "a stack without a Region, and HyperPod is not in all"
            arguments.refuse("env.region", wrong, "give the stack env=Environment(region=…)")
        if context is not None:
            name = _cluster_name(arguments, name, stated_name(cluster))
            arguments.claim(
                "the HyperPod cluster of this cluster",
                of=context.name,
                argument="cluster",
                todo="add instance groups to that one",
            )
        groups = [
            _stated_group(arguments, group, number) for number, group in enumerate(instance_groups)
        ]
        every = [*zones, *(zone for group in groups for zone in _zones(group))]
        reading = arguments.judge(
            config.Stated(
                kind=HyperPod,
                at=("hyperpod",),
                keys={"node_recovery": node_recovery},
            ),
            *groups,
            zones=every,
            instance_types=[group.instance_type for group in instance_groups],
            name=name,
            kubernetes={"version": known_version(version_of(cluster))},
        )
        assert context is not None, "a cluster that lacks something is refused"
        assert name is not None, "a name is required"
        assert arguments.region is not None, "a stack without a Region is refused"
        context = replace(context, private_subnet_ids=ids)
        ready = ready_of(cluster)
        self.node.add_dependency(*after, *([] if ready is None else [ready]))
        (settings,), (kubernetes,) = (
            reading.every(HyperPod),
            reading.every(config.Kubernetes),
        )
        with arguments.planning():
            pools = [arguments.with_tokens(pool) for pool in reading.every(config.Pool)]
            plans = [plan_pool(pool, kubernetes_version=kubernetes.version) for pool in pools]
            plan = hyperpod_with_groups(name, settings, [*map(plan_instance_group, pools, plans)])
            chart_plan = plan_hyperpod_chart(arguments.region, plans)
        with defining():
            resource = hyperpod.HyperPodCluster(
                self,
                "Cluster",
                plan=plan,
                region=arguments.region,
                cluster=context,
                subnet_ids={
                    group.name: [subnet.subnet_id for subnet in group.subnets]
                    for group in instance_groups
                },
                file_systems={},
            )
            if install_chart:
                # To define its build takes a third as long as everything else here.
                from ultrascale_constructs.hyperpod.chart import HyperPodChart

                chart = HyperPodChart(
                    self,
                    "Chart",
                    plan=replace(
                        chart_plan,
                        # A user's nodes may lack the labels that a cluster file's nodes have.
                        controller_node_selector=dict(controller_node_selector or {}),
                    ),
                    cluster=context,
                )
                resource.node.add_dependency(chart)
        self.arn = resource.arn
        self.name = plan.name


def _check(arguments: Arguments, group: InstanceGroup, prefix: str) -> None:
    """Refuse arguments of a group that have a wrong type."""
    arguments.lists(**{f"{prefix}subnets": group.subnets, f"{prefix}taints": group.taints})
    arguments.subnets(f"{prefix}subnets", group.subnets)
    arguments.values(f"{prefix}taints", group.taints, Taint)
    if group.training_plan is not None:
        arguments.value(f"{prefix}training_plan", group.training_plan, TrainingPlan)


def _check_selector(arguments: Arguments, selector: object) -> None:
    """Refuse a selector that is no mapping of text to text; None is allowed."""
    if selector is None:
        return
    got = repr(selector)
    values = mapping(selector).values()
    if not isinstance(selector, Mapping) or not all(isinstance(value, str) for value in values):
        todo = 'write such as {"ultrascale.dev/role": "system"}'
        arguments.refuse("controller_node_selector", "no labels", todo, got=got)


def _check_after(arguments: Arguments, after: object) -> None:
    """Refuse items that are no constructs to wait for."""
    for number, each in enumerate(sequence(after)):
        if not isinstance(each, DependencyGroup):
            arguments.construct(f"after[{number}]", each, "pass such as a NodePool", "node")


def _cluster_name(arguments: Arguments, name: str | None, cluster: str | None) -> str | None:
    if name is not None:
        return name
    if cluster is None or not _NAME.fullmatch(cluster):
        wrong = "no name, and that of the EKS cluster is none for HyperPod"
        arguments.refuse("name", wrong, "write one: a DNS label of at most 40 characters")
        return None
    return cluster


def _stated_group(arguments: Arguments, group: InstanceGroup, number: int) -> config.Stated:
    prefix = f"instance_groups[{number}]."
    purchase, bought = arguments.purchase(training_plan=group.training_plan)
    return config.Stated(
        kind=config.Pool,
        at=("instance_groups", number),
        keys={
            "name": group.name,
            "role": arguments.role(purchase),
            "instance_types": [group.instance_type],
            "provisioner": "hyperpod",
            "purchase": purchase,
            "nodes": {"static": group.nodes},
            "zones": arguments.zones(group.subnets, f"{prefix}subnets"),
            "efa": group.efa,
            "deep_health_checks": group.deep_health_checks,
            "labels": group.labels,
            "taints": [taint_keys(taint) for taint in group.taints],
        },
        names={
            ("instance_types", 0): "instance_type",
            ("instance_types",): "instance_type",
            ("nodes", "static"): "nodes",
            ("purchase",): bought,
            ("zones",): "subnets",
        },
        prefix=prefix,
    )


def _zones(group: config.Stated) -> Sequence[str]:
    return [str(zone) for zone in sequence(group.keys["zones"])]
