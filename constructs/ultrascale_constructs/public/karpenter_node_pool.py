"""NodePools for an existing Karpenter of a cluster."""

from collections.abc import Mapping, Sequence
from typing import Literal

from aws_cdk import aws_ec2 as ec2
from constructs import Construct
from msgspec.structs import replace

from ultrascale import config
from ultrascale.documents import JsonObject
from ultrascale.plan.pools.node_classes import node_class_of_others
from ultrascale.plan.pools.node_pools import foreign_node_pool
from ultrascale.plan.pools.repair import repair_by_karpenter
from ultrascale_constructs.nodes import placement_group_name, security_group_ids
from ultrascale_constructs.public.arguments import THIS_POOL, Arguments, defining
from ultrascale_constructs.public.cluster import AnyCluster, context_of, version_of
from ultrascale_constructs.public.node_pool import pool_name
from ultrascale_constructs.public.purchase import (
    CapacityBlock,
    CapacityReservation,
    Taint,
    taint_keys,
)
from ultrascale_k8s import node_pool_objects


class KarpenterNodePool(Construct):
    """Defines a NodePool and an EC2NodeClass of Karpenter, with every EFA interface in place.

    Karpenter is the cluster's own: neither its charts nor its role are touched. The node class
    names subnets and security groups by their ids, so nothing has to be tagged. A kubectl provider,
    shared by all constructs of a stack, applies the objects; it becomes an administrator of the
    cluster by an access entry (the cluster's access configuration needs the mode `API` or
    `API_AND_CONFIG_MAP`). Or `manifests` leaves them to you.

    Sources:
        https://karpenter.sh/docs/concepts/nodepools/
        https://karpenter.sh/docs/concepts/nodeclasses/
    """

    manifests: Sequence[JsonObject]
    """The objects, the node class first."""
    efa_security_group_id: str | None
    """Group that lets EFA traffic pass between the nodes; None without EFA."""
    efa_interfaces: int
    """EFA interfaces of a node."""
    labels: dict[str, str]
    """Labels of the nodes."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster: AnyCluster,
        subnets: Sequence[ec2.ISubnet],
        instance_types: Sequence[str],
        max_nodes: int,
        node_role: str,
        karpenter_version: str,
        name: str | None = None,
        role: Literal["reserved", "burst"] | None = None,
        capacity_block: CapacityBlock | None = None,
        capacity_reservation: str | None = None,
        spot: bool = False,
        efa: Literal["auto", "all", "none"] = "auto",
        placement_group: bool = False,
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Taint] = (),
        tags: Mapping[str, str] | None = None,
        kubernetes_version: str | None = None,
        max_pods: int | None = None,
        apply_manifests: bool = True,
    ) -> None:
        """Define the NodePool.

        Args:
            scope: Parent.
            id: Construct id.
            cluster: The cluster that has Karpenter.
            subnets: Private subnets of the nodes, of one zone for EFA and reservations; the API
                server is reached from them, too.
            instance_types: EC2 instance types, in order of preference.
            max_nodes: Most nodes; Karpenter launches them for pods, and takes empty ones away.
            node_role: Name of the IAM role of Karpenter's nodes, which the cluster lets in.
            karpenter_version: Version of Karpenter in the cluster, such as ``1.15.2``.
            name: Name of both objects: a DNS label of at most 50 characters. Default: the
                construct's id in lower case.
            role: ``reserved`` for nodes that are kept from disruption, ``burst`` for others.
                Default: ``reserved`` in a Capacity Block or a reservation.
            capacity_block: Capacity Block that the nodes are launched into.
            capacity_reservation: Id of an On-Demand Capacity Reservation that they are launched
                into.
            spot: Whether the nodes are Spot Instances.
            efa: EFA interfaces: on ``all`` cards, ``none``, or ``auto``: all cards where the pool
                has accelerators, one type and one zone.
            placement_group: Whether the nodes share a cluster placement group, which is defined.
            labels: Further labels of the nodes.
            taints: Further taints of the nodes.
            tags: EC2 tags of the instances and their volumes.
            kubernetes_version: Minor version of the cluster, such as ``1.35``, by which the AMI
                release is chosen. Default: the cluster's own where the app knows it, else the
                default of this package.
            max_pods: Most pods of a node. Default: as many as the node has addresses for with
                prefix delegation; set it where the VPC CNI has none.
            apply_manifests: Whether the objects are applied here, by functions in the subnets:
                where these have no NAT, also endpoints of Lambda and S3.

        Raises:
            ArgumentError: Arguments are wrong; one line for each.
        """
        super().__init__(scope, id)
        arguments = Arguments(self)
        arguments.lists(subnets=subnets, instance_types=instance_types, taints=taints)
        arguments.subnets("subnets", subnets)
        arguments.values("taints", taints, Taint)
        arguments.flags(spot=spot, placement_group=placement_group, apply_manifests=apply_manifests)
        arguments.text("node_role", node_role)
        arguments.count("max_pods", max_pods)
        if isinstance(capacity_reservation, CapacityReservation):
            todo = "write the id alone: Karpenter takes neither groups nor what spills"
            arguments.refuse("capacity_reservation", "not an id", todo)
        arguments.stop()
        name = pool_name(id) if name is None else name
        purchase, bought = arguments.purchase(
            capacity_block=capacity_block, capacity_reservation=capacity_reservation, spot=spot
        )
        ids = tuple(subnet.subnet_id for subnet in subnets)
        context = context_of(cluster, arguments, "vpc", "security_group_id", private_subnet_ids=ids)
        zones = arguments.zones(subnets)
        if context is not None:
            arguments.claim_pool(name, of=context.name)
        reading = arguments.judge(
            config.Stated(
                kind=config.Karpenter,
                at=("karpenter",),
                keys={"version": karpenter_version},
                names={("version",): "karpenter_version"},
            ),
            config.Stated(
                kind=config.Pool,
                at=THIS_POOL,
                keys={
                    "name": name,
                    "role": role or arguments.role(purchase),
                    "instance_types": [*instance_types],
                    "provisioner": "karpenter",
                    "purchase": purchase,
                    "nodes": {"max": max_nodes},
                    "zones": zones,
                    "efa": efa,
                    "placement_group": placement_group,
                    "labels": labels,
                    "taints": [taint_keys(taint) for taint in taints],
                    "tags": tags,
                },
                names={
                    ("nodes", "max"): "max_nodes",
                    ("purchase",): bought,
                    ("zones",): "subnets",
                },
            ),
            zones=zones,
            instance_types=instance_types,
            kubernetes={"version": version_of(cluster, kubernetes_version)},
        )
        assert context is not None, "a cluster that lacks something is refused"
        context = replace(context, private_subnet_ids=ids)
        pool = arguments.pool_plan(reading)
        if max_pods is not None:
            pool = replace(pool, max_pods=min(pool.max_pods, max_pods))
        (stated,) = reading.every(config.Pool)
        with arguments.planning():
            repair = repair_by_karpenter(karpenter_version, stated)
            node_pool = foreign_node_pool(pool, repair=repair)
        with defining():
            groups = security_group_ids(self, plan=pool, cluster=context)
            node_class = replace(
                node_class_of_others(pool, role=node_role),
                subnet_ids=ids,
                security_group_ids=tuple(groups),
                placement_group=placement_group_name(self, pool),
            )
            self.manifests = node_pool_objects(node_class, [node_pool])
            if apply_manifests:
                # Most apps need no kubectl provider.
                from ultrascale_constructs.public.manifests import manifests_of

                applier = manifests_of(self, context)
                for manifest in self.manifests:
                    # Identified by the name: a NodePool of another name is a new NodePool, and the
                    # old one is deleted.
                    applier.apply(f"{manifest['kind']}:{name}", [manifest], retain=False)
        self.efa_security_group_id = groups[1] if pool.efa_interfaces else None
        self.efa_interfaces = pool.efa_interfaces
        self.labels = dict(pool.labels)
