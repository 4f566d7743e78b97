"""NodePools and node classes of Karpenter and EKS Auto Mode."""

from collections.abc import Mapping, Sequence

import cdk8s
from constructs import Construct

from ultrascale import yaml_writer
from ultrascale.documents import Json, JsonObject
from ultrascale.plan.model import (
    Budget,
    NetworkInterface,
    NodeClassPlan,
    NodePoolPlan,
    Requirement,
    ReservationPlan,
    Taint,
)
from ultrascale.plan.names import INSTANCE_TYPE_LABEL, NODE_CONFIG_API_VERSION
from ultrascale_k8s._platform_chart import define_object

# --- Node classes of Karpenter and EKS Auto Mode --------------------------------------------------


Spec = JsonObject

KARPENTER_GROUP = "karpenter.k8s.aws"
AUTO_MODE_GROUP = "eks.amazonaws.com"
GROUPS: Mapping[str, str] = {"EC2NodeClass": KARPENTER_GROUP, "NodeClass": AUTO_MODE_GROUP}
"""API group of each kind of node class."""


def node_class_manifest(plan: NodeClassPlan) -> JsonObject:
    """Return the EC2NodeClass of Karpenter or the NodeClass of EKS Auto Mode."""
    specs = {"EC2NodeClass": ec2_node_class_spec, "NodeClass": node_class_spec}
    return {
        "apiVersion": f"{GROUPS[plan.kind]}/v1",
        "kind": plan.kind,
        "metadata": {"name": plan.name},
        "spec": specs[plan.kind](plan),
    }


def ec2_node_class_spec(plan: NodeClassPlan) -> Spec:
    """Return the ``spec`` of an EC2NodeClass.

    Source: https://karpenter.sh/docs/concepts/nodeclasses/
    """
    spec: dict[str, Json] = {
        "amiSelectorTerms": [{"alias": plan.ami_alias}],
        **_selectors(plan),
        "blockDeviceMappings": [_root_volume(plan)],
        "metadataOptions": {
            "httpEndpoint": "enabled",
            "httpProtocolIPv6": "disabled",
            # With one hop, pods cannot read the node's credentials.
            "httpPutResponseHopLimit": 1,
            "httpTokens": "required",
        },
        "kubelet": {"maxPods": plan.max_pods, **_name_servers(plan)},
    }
    if plan.network_interfaces:
        # Karpenter counts the EFA interfaces of a node from this list.
        spec["networkInterfaces"] = [_network_interface(nic) for nic in plan.network_interfaces]
    if plan.ip_prefixes:
        spec["ipPrefixCount"] = plan.ip_prefixes
    if plan.raid0:
        spec["instanceStorePolicy"] = "RAID0"
    gates = {
        "FastImagePull": plan.parallel_image_pull,
        "InstanceIdNodeName": plan.named_by_id,
    }
    if any(gates.values()):
        spec["userData"] = _user_data([gate for gate, on in gates.items() if on])
    if plan.tags:
        spec["tags"] = dict(plan.tags)
    return spec


def node_class_spec(plan: NodeClassPlan) -> Spec:
    """Return the ``spec`` of a NodeClass of EKS Auto Mode.

    EKS itself chooses AMI, kubelet, metadata service and the volume of the NVMe disks.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/create-node-class.html
    """
    disk = plan.root_disk
    spec: dict[str, Json] = {
        **_selectors(plan),
        "ephemeralStorage": {
            "size": f"{disk.size_gib}Gi",
            "iops": disk.iops,
            "throughput": disk.throughput_mibps,
            **_volume_key_field(plan),
        },
        # Same values as EKS's defaults.
        "snatPolicy": "Random",
        "networkPolicy": "DefaultAllow",
        "networkPolicyEventLogs": "Disabled",
    }
    if plan.network_interfaces:
        primary, *others = (_network_interface(nic) for nic in plan.network_interfaces)
        own = {"secondaryIPv4PrefixCount": plan.ip_prefixes}
        if plan.pod_addresses is not None:
            own = {"secondaryIPv4Count": plan.pod_addresses}
        spec["advancedNetworking"] = {"networkInterfaces": [{**primary, **own}, *others]}
    elif plan.pod_addresses is not None:
        spec["advancedNetworking"] = {"ipv4PrefixSize": "32"}
    if plan.tags:
        spec["tags"] = dict(plan.tags)
    return spec


def _selectors(plan: NodeClassPlan) -> Spec:
    """Return the fields that node classes of both kinds share."""
    groups = [{"tags": dict(tags)} for tags in plan.security_group_tags]
    profile = plan.instance_profile
    spec: dict[str, Json] = {
        # Only one of the two fields is set.
        **({"role": plan.role} if profile is None else {"instanceProfile": profile}),
        # A term has either tags or an id.
        "subnetSelectorTerms": _id_terms(plan.subnet_ids) or [{"tags": dict(plan.subnet_tags)}],
        "securityGroupSelectorTerms": _id_terms(plan.security_group_ids) or groups,
    }
    if plan.reservation is not None:
        spec["capacityReservationSelectorTerms"] = [_reservation_term(plan.reservation)]
    if plan.placement_group is not None:
        spec["placementGroupSelector"] = {"name": plan.placement_group}
    return spec


def _id_terms(values: Sequence[str]) -> list[Json]:
    return [{"id": value} for value in values]


def _reservation_term(reservation: ReservationPlan) -> Spec:
    if reservation.id is not None:
        return {"id": reservation.id}
    return {"tags": dict(reservation.tags)}


def _network_interface(nic: NetworkInterface) -> Spec:
    return {"networkCardIndex": nic.card, "deviceIndex": nic.device, "interfaceType": nic.kind}


def _root_volume(plan: NodeClassPlan) -> Spec:
    disk = plan.root_disk
    return {
        "deviceName": "/dev/xvda",
        "rootVolume": True,
        "ebs": {
            "volumeType": "gp3",
            "volumeSize": f"{disk.size_gib}Gi",
            "iops": disk.iops,
            "throughput": disk.throughput_mibps,
            "encrypted": True,
            **_volume_key_field(plan),
            "deleteOnTermination": True,
        },
    }


def _volume_key_field(plan: NodeClassPlan) -> Spec:
    return {} if plan.volume_key is None else {"kmsKeyID": plan.volume_key}


def _name_servers(plan: NodeClassPlan) -> Spec:
    return {"clusterDNS": list(plan.name_servers)} if plan.name_servers else {}


def _user_data(gates: Sequence[str]) -> str:
    """Return the user data that Karpenter merges with its own NodeConfig.

    Source: https://awslabs.github.io/amazon-eks-ami/nodeadm/doc/examples/
    """
    config = {
        "apiVersion": NODE_CONFIG_API_VERSION,
        "kind": "NodeConfig",
        "spec": {"featureGates": dict.fromkeys(gates, True)},
    }
    return yaml_writer.dump(config)


# --- NodePools of Karpenter and EKS Auto Mode -----------------------------------------------------


# Karpenter sets this label on its nodes, and matches overlays by it.
_NODE_POOL_LABEL = "karpenter.sh/nodepool"


class NodePoolsChart(cdk8s.Chart):
    """Defines the node class of one pool, or of one of its shards, and the NodePools on it.

    Each node class has a chart of its own, so that a pool that leaves the cluster file is deleted,
    and no manifest exceeds the size that CloudFormation passes on.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        node_class: NodeClassPlan,
        node_pools: Sequence[NodePoolPlan],
    ) -> None:
        """Define the node class and its NodePools.

        Args:
            scope: The cdk8s app.
            id: Id of the chart, and name of its file.
            node_class: The node class.
            node_pools: The NodePools that launch from it.
        """
        super().__init__(scope, id, disable_resource_name_hashes=True)
        define_object(self, "NodeClass", node_class_manifest(node_class))
        for node_pool in node_pools:
            if node_pool.unseen_resources:
                id = f"{node_pool.name}-overlay"
                define_object(self, id, node_overlay_manifest(node_pool))
        for node_pool in node_pools:
            define_object(self, node_pool.name, node_pool_manifest(node_pool))


def node_overlay_manifest(plan: NodePoolPlan) -> JsonObject:
    """Return the NodeOverlay with the resources of nodes that Karpenter does not know by itself.

    The overlay covers only this NodePool: of two overlays for the same nodes, one would be ignored.

    Source: https://karpenter.sh/docs/concepts/nodeoverlays/
    """
    types = next(r for r in plan.requirements if r.key == INSTANCE_TYPE_LABEL)
    own = Requirement(key=_NODE_POOL_LABEL, values=(plan.name,))
    return {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": {"name": plan.name},
        "spec": {
            "requirements": [_requirement(own), _requirement(types)],
            "capacity": dict(plan.unseen_resources),
        },
    }


def node_pool_manifest(plan: NodePoolPlan) -> JsonObject:
    """Return the NodePool."""
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": plan.name},
        "spec": node_pool_spec(plan),
    }


def node_pool_spec(plan: NodePoolPlan) -> Spec:
    """Return the ``spec`` of a NodePool, which is static if the plan has replicas.

    Source: https://karpenter.sh/docs/concepts/nodepools/
    """
    spec: dict[str, Json] = {}
    if plan.replicas is not None:
        spec["replicas"] = plan.replicas
    if plan.weight is not None:
        spec["weight"] = plan.weight
    return {
        **spec,
        "limits": _limits(plan),
        "disruption": {
            "consolidationPolicy": plan.consolidation_policy,
            "consolidateAfter": plan.consolidate_after,
            "budgets": [_budget(budget) for budget in plan.budgets],
        },
        "template": {"metadata": {"labels": dict(plan.labels)}, "spec": _node_claim_spec(plan)},
    }


def _limits(plan: NodePoolPlan) -> Mapping[str, str]:
    nodes = {"nodes": str(plan.max_nodes)}
    return nodes if plan.max_vcpus is None else {**nodes, "cpu": str(plan.max_vcpus)}


def _node_claim_spec(plan: NodePoolPlan) -> Spec:
    spec: dict[str, Json] = {
        "nodeClassRef": {
            "group": GROUPS[plan.node_class_kind],
            "kind": plan.node_class_kind,
            "name": plan.node_class,
        },
        "requirements": [_requirement(requirement) for requirement in plan.requirements],
        "expireAfter": plan.expire_after,
    }
    if plan.termination_grace_period is not None:
        spec["terminationGracePeriod"] = plan.termination_grace_period
    if plan.taints:
        spec["taints"] = [_taint(taint) for taint in plan.taints]
    if plan.startup_taints:
        spec["startupTaints"] = [_taint(taint) for taint in plan.startup_taints]
    return spec


def _requirement(requirement: Requirement) -> Spec:
    return {"key": requirement.key, "operator": "In", "values": list(requirement.values)}


def _taint(taint: Taint) -> Spec:
    value = {"value": taint.value} if taint.value else {}
    return {"key": taint.key, **value, "effect": taint.effect}


def _budget(budget: Budget) -> Spec:
    if budget.reasons:
        return {"nodes": budget.nodes, "reasons": list(budget.reasons)}
    return {"nodes": budget.nodes}
