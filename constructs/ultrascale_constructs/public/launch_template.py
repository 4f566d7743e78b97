"""Launch templates of accelerated nodes."""

from collections.abc import Mapping, Sequence
from typing import Literal

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from ultrascale import config
from ultrascale_constructs import launch_template
from ultrascale_constructs.efa_security_group import EfaSecurityGroup
from ultrascale_constructs.nodes import placement_group_name, reservation_group_arn
from ultrascale_constructs.public.arguments import THIS_POOL, Arguments, defining
from ultrascale_constructs.public.existing_cluster import AnyCluster, context_of, version_of
from ultrascale_constructs.public.purchase import CapacityBlock, CapacityReservation

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

    Attributes:
        template: The launch template.
        spec: Id and latest version, as `aws_eks_v2.Nodegroup` takes them.
        launch_template_id: Its id.
        latest_version: Its newest version: a node group that names it follows every change.
        ami_type: EKS AMI type of the instance type, such as ``AL2023_X86_64_NVIDIA``.
        release_version: Release of the EKS-optimized AMI that this package is tested with.
        capacity_type: `CapacityType` of the node group: ``ON_DEMAND``, ``SPOT`` or
            ``CAPACITY_BLOCK``.
        efa_security_group_id: Group that lets EFA traffic pass between the nodes; None without EFA.
        efa_interfaces: EFA interfaces of a node.
        labels: Labels for the node group, by which device plugins and schedulers know its nodes.
    """

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
                    "role": "burst",
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
            self.efa_security_group_id: str | None = None
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
