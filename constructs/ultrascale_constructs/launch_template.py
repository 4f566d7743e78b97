"""EC2 launch templates of node groups."""

from collections.abc import Mapping, Sequence

import yaml
from aws_cdk import Fn
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ultrascale.plan.model import PoolPlan

_Lt = ec2.CfnLaunchTemplate
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
        disk = plan.root_disk
        self.template = _Lt(
            self,
            "Resource",
            launch_template_data=_Lt.LaunchTemplateDataProperty(
                # Several types stand in the node group instead; EKS refuses both.
                instance_type=plan.instance_types[0] if len(plan.instance_types) == 1 else None,
                network_interfaces=_network_interfaces(plan, security_group_ids),
                block_device_mappings=[
                    _Lt.BlockDeviceMappingProperty(
                        device_name="/dev/xvda",
                        ebs=_Lt.EbsProperty(
                            volume_type="gp3",
                            volume_size=disk.size_gib,
                            iops=disk.iops,
                            throughput=disk.throughput_mibps,
                            encrypted=True,
                            delete_on_termination=True,
                        ),
                    )
                ],
                metadata_options=_Lt.MetadataOptionsProperty(
                    http_tokens="required", http_put_response_hop_limit=1
                ),
                placement=_Lt.PlacementProperty(group_name=placement_group_name)
                if placement_group_name
                else None,
                tag_specifications=[
                    _Lt.TagSpecificationProperty(
                        resource_type=resource_type,
                        tags=[{"key": "Name", "value": f"{cluster_name}-{plan.name}"}],
                    )
                    for resource_type in ("instance", "volume")
                ],
                user_data=Fn.base64(user_data(plan)),
            ),
        )


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
    return {"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": spec}


def _network_interfaces(
    plan: PoolPlan, security_group_ids: Sequence[str]
) -> list[ec2.CfnLaunchTemplate.NetworkInterfaceProperty] | None:
    if not plan.network_interfaces:
        return None
    return [
        _Lt.NetworkInterfaceProperty(
            network_card_index=nic.card,
            device_index=nic.device,
            interface_type=nic.kind,
            groups=list(security_group_ids),
            delete_on_termination=True,
        )
        for nic in plan.network_interfaces
    ]
