"""EC2 launch templates of node groups."""

from collections.abc import Mapping, Sequence

import yaml
from aws_cdk import Fn
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ultrascale.catalog.eks import NODE_CONFIG_API_VERSION
from ultrascale.plan.model import NetworkInterface, PoolPlan, RootDisk

_BOUNDARY = "NODECONFIG"


class NodeLaunchTemplate(Construct):
    """Defines the launch template of one pool's nodes.

    Attributes:
        template: The template.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: PoolPlan,
        cluster_name: str,
        security_group_ids: Sequence[str],
        placement_group_name: str | None,
    ) -> None:
        super().__init__(scope, id)
        empty = ec2.CfnLaunchTemplate.LaunchTemplateDataProperty()
        self.template = ec2.CfnLaunchTemplate(self, "Resource", launch_template_data=empty)
        data = launch_template_data(
            plan,
            name=f"{cluster_name}-{plan.name}",
            security_group_ids=security_group_ids,
            placement_group_name=placement_group_name,
        )
        # As one document: the typed properties cost a call and a check for each of up to 33
        # interfaces, half the time a pool takes to synthesize.
        self.template.add_property_override("LaunchTemplateData", data)


def launch_template_data(
    plan: PoolPlan,
    *,
    name: str,
    security_group_ids: Sequence[str],
    placement_group_name: str | None,
) -> Mapping[str, object]:
    """Return the `LaunchTemplateData` of a pool, as CloudFormation spells it."""
    data: dict[str, object] = {
        "BlockDeviceMappings": [_root_volume(plan.root_disk)],
        "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1},
        "TagSpecifications": [
            {"ResourceType": kind, "Tags": [{"Key": "Name", "Value": name}]}
            for kind in ("instance", "volume")
        ],
        "UserData": Fn.base64(user_data(plan)),
    }
    if len(plan.instance_types) == 1:
        # Several types stand in the node group instead; EKS refuses both.
        data["InstanceType"] = plan.instance_types[0]
    if plan.network_interfaces:
        data["NetworkInterfaces"] = [
            _network_interface(nic, security_group_ids) for nic in plan.network_interfaces
        ]
    if placement_group_name is not None:
        data["Placement"] = {"GroupName": placement_group_name}
    return data


def _root_volume(disk: RootDisk) -> Mapping[str, object]:
    return {
        "DeviceName": "/dev/xvda",
        "Ebs": {
            "VolumeType": "gp3",
            "VolumeSize": disk.size_gib,
            "Iops": disk.iops,
            "Throughput": disk.throughput_mibps,
            "Encrypted": True,
            "DeleteOnTermination": True,
        },
    }


def _network_interface(
    nic: NetworkInterface, security_group_ids: Sequence[str]
) -> Mapping[str, object]:
    return {
        "NetworkCardIndex": nic.card,
        "DeviceIndex": nic.device,
        "InterfaceType": nic.kind,
        "Groups": list(security_group_ids),
        "DeleteOnTermination": True,
    }


def user_data(plan: PoolPlan) -> str:
    """Return the MIME document that EKS merges with its own part before nodeadm reads it.

    Source: https://awslabs.github.io/amazon-eks-ami/nodeadm/
    """
    document = yaml.safe_dump(node_config(plan), sort_keys=False)
    return (
        "MIME-Version: 1.0\n"
        f'Content-Type: multipart/mixed; boundary="{_BOUNDARY}"\n'
        "\n"
        f"--{_BOUNDARY}\n"
        "Content-Type: application/node.eks.aws\n"
        "\n"
        f"---\n{document}"
        f"--{_BOUNDARY}--\n"
    )


def node_config(plan: PoolPlan) -> Mapping[str, object]:
    """Return the nodeadm NodeConfig of a pool."""
    spec: dict[str, object] = {"kubelet": {"config": {"maxPods": plan.max_pods}}}
    if plan.raid0:
        spec["instance"] = {"localStorage": {"strategy": "RAID0"}}
    if plan.parallel_image_pull:
        spec["featureGates"] = {"FastImagePull": True}
    return {"apiVersion": NODE_CONFIG_API_VERSION, "kind": "NodeConfig", "spec": spec}
