"""Node classes of Karpenter and EKS Auto Mode."""

from collections.abc import Mapping, Sequence

from ultrascale import yaml_writer
from ultrascale.documents import Json, JsonObject
from ultrascale.plan.model import NetworkInterface, NodeClassPlan, ReservationPlan
from ultrascale.plan.names import NODE_CONFIG_API_VERSION

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
