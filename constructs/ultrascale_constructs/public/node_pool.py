"""Pools of nodes in node groups, and launch templates of accelerated nodes."""

from collections.abc import Mapping, Sequence
from typing import Literal

from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from constructs import Construct
from msgspec.structs import replace

from ultrascale import config
from ultrascale.plan import retention
from ultrascale.plan.model import NodeGroupPlan
from ultrascale.plan.pools.node_groups import plan_node_group
from ultrascale.plan.pools.repair import repair_of
from ultrascale.plan.pools.scaling import autoscaler_tags
from ultrascale_constructs import launch_template
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.guarded_node_group import define_node_group
from ultrascale_constructs.node_group_functions import NodeGroupFunctions
from ultrascale_constructs.nodes import (
    EfaSecurityGroup,
    placement_group_name,
    reservation_group_arn,
)
from ultrascale_constructs.public.arguments import THIS_POOL, Arguments, defining, digest
from ultrascale_constructs.public.cluster import (
    AnyCluster,
    context_of,
    is_own,
    ready_of,
    stated_name,
    version_of,
)
from ultrascale_constructs.public.purchase import (
    CapacityBlock,
    CapacityReservation,
    Nodes,
    Taint,
    nodes_keys,
    taint_keys,
)

# --- Launch templates of accelerated nodes --------------------------------------------------------


_CAPACITY_TYPES: Mapping[str, str] = {"capacity-block": "CAPACITY_BLOCK", "spot": "SPOT"}


class LaunchTemplate(Construct):
    """Defines the launch template of an EKS managed node group, with every EFA interface in place.

    It has an ENA interface and an EFA-only interface on each network card that takes one, the
    security groups of all interfaces, an encrypted gp3 root volume, IMDSv2 with one hop, the
    capacity that the nodes launch into, and the configuration of nodeadm: pods that the node has
    addresses for, NVMe disks as one RAID0 volume, parallel image pulls. EKS adds the image and the
    data to join the cluster: give the node group `ami_type`, `capacity_type` and `spec`, and
    subnets of one zone where there is EFA or a reservation.

    Sources:
        https://docs.aws.amazon.com/eks/latest/userguide/launch-templates.html
        https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html
        https://docs.aws.amazon.com/eks/latest/userguide/capacity-blocks-mng.html
    """

    template: ec2.CfnLaunchTemplate
    """The launch template."""
    spec: eks.LaunchTemplateSpec
    """Id and latest version, as `aws_eks_v2.Nodegroup` takes them."""
    launch_template_id: str
    """Its id."""
    latest_version: str
    """Its newest version: a node group that names it follows every change."""
    ami_type: str
    """EKS AMI type of the instance type, such as ``AL2023_X86_64_NVIDIA``."""
    release_version: str
    """Release of the EKS-optimized AMI that this package is tested with."""
    capacity_type: str
    """`CapacityType` of the node group: ``ON_DEMAND``, ``SPOT`` or ``CAPACITY_BLOCK``."""
    efa_security_group_id: str | None
    """Group that lets EFA traffic pass between the nodes; None without EFA."""
    efa_interfaces: int
    """EFA interfaces of a node."""
    labels: dict[str, str]
    """Labels of its nodes, which device plugins and schedulers select."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: AnyCluster,
        instance_type: str,
        efa: Literal["auto", "all", "none"] = "auto",
        capacity_block: CapacityBlock | None = None,
        capacity_reservation: CapacityReservation | str | None = None,
        spot: bool = False,
        placement_group: bool = False,
        security_groups: Sequence[ec2.ISecurityGroup] = (),
        kubernetes_version: str | None = None,
        tags: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> None:
        """Define the launch template.

        Args:
            scope: Parent.
            id: Construct id.
            cluster: The cluster that the nodes join.
            instance_type: EC2 instance type, such as ``p5.48xlarge``.
            efa: EFA interfaces: on ``all`` cards, ``none``, or ``auto``: all cards of a type with
                accelerators.
            capacity_block: Capacity Block that the nodes launch into.
            capacity_reservation: On-Demand Capacity Reservation that they launch into, or its id.
            spot: Whether the node group launches Spot Instances.
            placement_group: Whether the nodes share a cluster placement group, which is defined.
            security_groups: Further groups of every interface, beside the cluster's.
            kubernetes_version: Minor version of the cluster, such as ``1.35``. Default: the
                cluster's own where the app knows it, else the default of this package.
            tags: EC2 tags of the instances and their volumes, such as for cost allocation.
            name: Name of the nodes' pool: a DNS label of at most 50 characters. Default: the
                construct's id in lower case.

        Raises:
            ArgumentError: Arguments are wrong; one line for each.
        """
        super().__init__(scope, id)
        arguments = Arguments(self)
        arguments.lists(security_groups=security_groups)
        arguments.stop()
        for number, group in enumerate(security_groups):
            arguments.construct(
                f"security_groups[{number}]",
                group,
                "pass an ec2.SecurityGroup",
                "security_group_id",
            )
        arguments.flags(spot=spot, placement_group=placement_group)
        arguments.stop()
        purchase, bought = arguments.purchase(
            capacity_block=capacity_block, capacity_reservation=capacity_reservation, spot=spot
        )
        context = context_of(cluster, arguments, "vpc", "security_group_id")
        zone = "${Zone}"
        reading = arguments.judge(
            config.Stated(
                kind=config.Pool,
                at=THIS_POOL,
                keys={
                    "name": pool_name(id) if name is None else name,
                    "role": arguments.role(purchase),
                    # The group chooses among several types; a template names a single type.
                    "instance_types": [instance_type],
                    "provisioner": "managed-node-group",
                    "purchase": purchase,
                    "nodes": {"max": 1},
                    "zones": [zone],
                    "efa": efa,
                    "placement_group": placement_group,
                    "tags": tags,
                },
                names={
                    ("instance_types", 0): "instance_type",
                    ("instance_types",): "instance_type",
                    ("purchase",): bought,
                },
            ),
            zones=[zone],
            instance_types=[instance_type],
            kubernetes={"version": version_of(cluster, kubernetes_version)},
        )
        assert context is not None, "a cluster that lacks something is refused"
        pool = arguments.pool_plan(reading)
        if pool.reservation is not None and pool.reservation.spill:
            # The resource group is named after the pool.
            arguments.claim_pool(pool.name, of=context.name)
            arguments.stop()
        with defining():
            self.efa_security_group_id = None
            groups = [
                context.security_group_id,
                *(each.security_group_id for each in security_groups),
            ]
            if pool.efa_interfaces:
                efa_group = EfaSecurityGroup(
                    self, "EfaSecurityGroup", vpc=context.vpc, pool=pool.name, tags={}
                )
                self.efa_security_group_id = efa_group.security_group_id
                groups.append(efa_group.security_group_id)
            inner = Construct(self, "Template")
            self.template = launch_template.NodeLaunchTemplate(
                inner,
                "LaunchTemplate",
                plan=pool,
                cluster_name=context.name,
                security_group_ids=groups,
                placement_group_name=placement_group_name(self, pool),
                reservation_group_arn=reservation_group_arn(
                    inner, plan=pool, cluster_name=context.name
                ),
            ).template
        self.launch_template_id = self.template.ref
        self.latest_version = self.template.attr_latest_version_number
        self.spec = eks.LaunchTemplateSpec(id=self.launch_template_id, version=self.latest_version)
        self.ami_type = pool.ami_type
        self.release_version = pool.ami_release
        self.capacity_type = _CAPACITY_TYPES.get(pool.purchase, "ON_DEMAND")
        self.efa_interfaces = pool.efa_interfaces
        self.labels = dict(pool.labels)


def pool_name(id: str) -> str:
    """Return the default name of a pool, from its construct's id."""
    return "".join(each if each.isalnum() else "-" for each in id.lower()).strip("-")


# --- Pools of nodes in node groups ----------------------------------------------------------------


# Fields in the user data of self-managed nodes; for managed nodes EKS adds them.
_SELF_MANAGED = ("endpoint", "certificate_authority", "service_cidr")


class NodePool(Construct):
    """Defines a pool of identical nodes: a node group with its role, groups and launch template.

    Before each update, a custom resource refuses to replace running nodes that have reserved
    capacity or EFA. The nodes of a Capacity Block are launched at its start and drained before its
    end. Pools of the same cluster and stack share the function behind both.

    The cluster needs the device plugin of the accelerators and the one for EFA, and an access
    configuration with the mode `API` or `API_AND_CONFIG_MAP`.

    Sources:
        https://docs.aws.amazon.com/eks/latest/userguide/managed-node-groups.html
        https://docs.aws.amazon.com/eks/latest/userguide/capacity-blocks-mng.html
    """

    node_group_name: str
    """Name of the node group, or of the Auto Scaling group of self-managed nodes."""
    node_group_arn: str
    """Its ARN."""
    labels: dict[str, str]
    """Labels of the nodes."""
    efa_interfaces: int
    """EFA interfaces of a node."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: AnyCluster,
        subnets: Sequence[ec2.ISubnet],
        instance_types: Sequence[str],
        nodes: Nodes | int,
        name: str | None = None,
        provisioner: Literal["managed-node-group", "self-managed"] = "managed-node-group",
        role: Literal["system", "reserved", "burst"] | None = None,
        capacity_block: CapacityBlock | None = None,
        capacity_reservation: CapacityReservation | str | None = None,
        spot: bool = False,
        efa: Literal["auto", "all", "none"] = "auto",
        placement_group: bool = False,
        repair: Literal["none", "replace"] | None = None,
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Taint] = (),
        tags: Mapping[str, str] | None = None,
        kubernetes_version: str | None = None,
        cni_rights: bool | None = None,
        max_pods: int | None = None,
        termination_handler: bool = False,
    ) -> None:
        """Define the pool.

        Args:
            scope: Parent.
            id: Construct id.
            cluster: The cluster that the nodes join.
            subnets: Private subnets of the nodes: of one zone for EFA and reservations, and a
                single one for a Capacity Block.
            instance_types: EC2 instance types, in order of preference.
            nodes: Number of nodes; a bare number is a fixed count.
            name: Name of the pool, unique in the cluster: a DNS label of at most 50 characters. It
                is the nodes' label `node-type`, too. Default: the construct's id in lower case.
            provisioner: ``managed-node-group`` of EKS, or a ``self-managed`` Auto Scaling group.
            role: ``system`` for nodes of controllers and add-ons, ``reserved`` for nodes that are
                kept, ``burst`` for others. Default: ``system`` for the pool of that name,
                ``reserved`` in a Capacity Block or a reservation, else ``burst``.
            capacity_block: Capacity Block that the nodes are launched into.
            capacity_reservation: On-Demand Capacity Reservation of the nodes, or its id.
            spot: Whether the nodes are Spot Instances.
            efa: EFA interfaces: on ``all`` cards, ``none``, or ``auto``: all cards where the pool
                has accelerators, one type and one zone.
            placement_group: Whether the nodes share a cluster placement group.
            repair: Whether EKS replaces broken nodes of a managed group. Default: where the nodes
                are not reserved.
            labels: Further labels of the nodes.
            taints: Further taints of the nodes.
            tags: EC2 tags of the instances and their volumes.
            kubernetes_version: Minor version of the cluster, such as ``1.35``, by which the AMI
                release is chosen. Default: the cluster's own; required where the app does not
                know it.
            cni_rights: Whether the role of the nodes has AmazonEKS_CNI_Policy, which the VPC CNI
                needs where it has no role of its own. Default: true, but for a `Cluster` of this
                package.
            max_pods: Most pods of a node. Default: as many as the node has addresses for with
                prefix delegation; set it where the VPC CNI has none.
            termination_handler: Whether aws-node-termination-handler drains self-managed nodes by
                the lifecycle hook `drain`.

        Raises:
            ArgumentError: Arguments are wrong; one line for each.
        """
        super().__init__(scope, id)
        arguments = Arguments(self)
        arguments.lists(subnets=subnets, instance_types=instance_types, taints=taints)
        arguments.subnets("subnets", subnets)
        arguments.values("taints", taints, Taint)
        arguments.flags(
            spot=spot,
            placement_group=placement_group,
            termination_handler=termination_handler,
            **({} if cni_rights is None else {"cni_rights": cni_rights}),
        )
        arguments.count("max_pods", max_pods)
        arguments.stop()
        name = pool_name(id) if name is None else name
        purchase, bought = arguments.purchase(
            capacity_block=capacity_block, capacity_reservation=capacity_reservation, spot=spot
        )
        fields = _SELF_MANAGED if provisioner == "self-managed" else ()
        context = context_of(cluster, arguments, "vpc", "security_group_id", *fields)
        zones = arguments.zones(subnets)
        _check(arguments, subnets, provisioner, capacity_block=capacity_block)
        if context is not None:
            arguments.claim_pool(name, of=context.name)
            if provisioner == "self-managed":
                context = _named_context(arguments, context, cluster)
        if (ready := ready_of(cluster)) is not None:
            self.node.add_dependency(ready)
        version = version_of(cluster, kubernetes_version)
        if version is None and context is not None:
            wrong = "not known of this cluster, and EKS refuses a release that is newer than it"
            arguments.refuse("kubernetes_version", wrong, "add kubernetes_version")
        reading = arguments.judge(
            config.Stated(
                kind=config.Pool,
                at=THIS_POOL,
                keys={
                    "name": name,
                    "role": role or ("system" if name == "system" else arguments.role(purchase)),
                    "instance_types": [*instance_types],
                    "provisioner": provisioner,
                    "purchase": purchase,
                    "nodes": nodes_keys(nodes),
                    "zones": zones,
                    "efa": efa,
                    "placement_group": placement_group,
                    "repair": repair,
                    "labels": labels,
                    "taints": [taint_keys(taint) for taint in taints],
                    "tags": tags,
                },
                names={("purchase",): bought, ("zones",): "subnets"},
            ),
            zones=zones,
            instance_types=instance_types,
            kubernetes={"version": version},
        )
        assert context is not None, "a cluster that lacks something is refused"
        pool = arguments.pool_plan(reading)
        if max_pods is not None:
            pool = replace(pool, max_pods=min(pool.max_pods, max_pods))
        (stated,) = reading.every(config.Pool)
        group = plan_node_group(
            pool,
            subnets=(),
            autoscaler_tags=autoscaler_tags(context.name, pool),
            repaired=repair_of(stated) == "replace",
        )
        group = replace(
            group,
            carries_cni_rights=not is_own(cluster) if cni_rights is None else cni_rights,
            drain_seconds=group.drain_seconds if termination_handler else 0,
        )
        with defining():
            self._define(group, context, [subnet.subnet_id for subnet in subnets])
        self.labels = dict(pool.labels)
        self.efa_interfaces = pool.efa_interfaces

    def _define(self, group: NodeGroupPlan, context: ClusterContext, subnet_ids: list[str]) -> None:
        resource = define_node_group(
            self,
            plan=group,
            cluster=context,
            subnet_ids=subnet_ids,
            service_token=_functions(self, context.name).service_token,
            log_retention_days=retention.LOG_DAYS,
        )
        self.node_group_name = resource.group_name
        self.node_group_arn = resource.group_arn


def _check(
    arguments: Arguments,
    subnets: Sequence[ec2.ISubnet],
    provisioner: str,
    *,
    capacity_block: CapacityBlock | None,
) -> None:
    """Refuse combinations of arguments that no cluster file can state."""
    if provisioner not in ("managed-node-group", "self-managed"):
        wrong = "not a provisioner of this construct"
        todo = "use managed-node-group or self-managed"
        arguments.refuse("provisioner", wrong, todo, got=repr(provisioner))
    if capacity_block is not None and len(subnets) > 1:
        wrong = "several subnets, and EKS takes one for the nodes of a Capacity Block"
        arguments.refuse("subnets", wrong, "keep one of the block's zone", got=str(len(subnets)))


def _named_context(
    arguments: Arguments, context: ClusterContext, cluster: AnyCluster
) -> ClusterContext:
    """Return the context with the cluster's name as text, for keys of tags and conditions."""
    name = stated_name(cluster)
    if name is None:
        wrong = "a cluster whose name CloudFormation makes up"
        todo = "give the cluster a name: tags of self-managed nodes hold it"
        arguments.refuse("cluster", wrong, todo)
        return context
    return replace(context, name=name)


def _functions(scope: Construct, cluster_name: str) -> NodeGroupFunctions:
    """Return the function that the node groups of a cluster share within a stack."""
    stack = Stack.of(scope)
    id = f"UltrascaleNodeGroups{digest(scope, cluster_name)}"
    found = stack.node.try_find_child(id)
    if isinstance(found, NodeGroupFunctions):
        return found
    return NodeGroupFunctions(
        stack,
        id,
        cluster_name=cluster_name,
        log_retention_days=retention.LOG_DAYS,
        of_this_stack=True,
    )
