"""EC2 launch templates of node groups, and the configuration of nodeadm in their user data."""

from collections.abc import Mapping, Sequence

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ultrascale import yaml_writer
from ultrascale.frozen import Frozen
from ultrascale.plan import names
from ultrascale.plan.model import NetworkInterface, PoolPlan
from ultrascale_constructs.cluster_context import ClusterContext

# --- User data of nodes: the configuration of nodeadm ---------------------------------------------


_BOUNDARY = "NODECONFIG"


def user_data(plan: PoolPlan, *, cluster: ClusterContext | None = None) -> str:
    """Return the MIME document that nodeadm reads.

    Args:
        plan: The pool.
        cluster: The cluster to join; None for managed nodes: EKS adds a document with the cluster,
            and with the labels and taints of the node group.

    Source: https://awslabs.github.io/amazon-eks-ami/nodeadm/
    """
    document = yaml_writer.dump(node_config(plan, cluster=cluster))
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


def node_config(plan: PoolPlan, *, cluster: ClusterContext | None = None) -> Mapping[str, object]:
    """Return the nodeadm NodeConfig of a pool; it is complete only with ``cluster``.

    Source: https://awslabs.github.io/amazon-eks-ami/nodeadm/doc/api/
    """
    spec: dict[str, object] = {}
    kubelet: dict[str, object] = {"config": {"maxPods": plan.max_pods, **_name_servers(plan)}}
    if cluster is not None:
        # nodeadm reads none of these values from EKS: after EKS has rotated the authority, new
        # nodes get it by a deployment.
        # https://github.com/awslabs/amazon-eks-ami/blob/main/nodeadm/internal/api/validation.go
        spec["cluster"] = {
            "name": cluster.name,
            "apiServerEndpoint": cluster.endpoint,
            "certificateAuthority": cluster.certificate_authority,
            "cidr": cluster.service_cidr,
        }
        kubelet["flags"] = _registration(plan)
    spec["kubelet"] = kubelet
    if plan.raid0:
        spec["instance"] = {"localStorage": {"strategy": "RAID0"}}
    if plan.parallel_image_pull:
        spec["featureGates"] = {"FastImagePull": True}
    return {"apiVersion": names.NODE_CONFIG_API_VERSION, "kind": "NodeConfig", "spec": spec}


def _name_servers(plan: PoolPlan) -> Mapping[str, object]:
    return {"clusterDNS": list(plan.name_servers)} if plan.name_servers else {}


def _registration(plan: PoolPlan) -> list[str]:
    """Return the kubelet's flags by which a node registers with its labels and taints.

    Source: https://kubernetes.io/docs/reference/command-line-tools-reference/kubelet/
    """
    labels = ",".join(f"{key}={value}" for key, value in plan.labels.items())
    flags = [f"--node-labels={labels}"]
    if plan.taints:
        taints = ",".join(f"{taint.key}={taint.value}:{taint.effect}" for taint in plan.taints)
        flags.append(f"--register-with-taints={taints}")
    return flags


# --- EC2 launch templates of node groups ----------------------------------------------------------


class SelfManaged(Frozen):
    """Values that self-managed nodes need, and that EKS itself fills in for managed nodes."""

    cluster: ClusterContext  # The cluster that the nodes join
    instance_profile_arn: str  # ARN of the nodes' instance profile


class NodeLaunchTemplate(Construct):
    """Defines the launch template of one pool's nodes."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: PoolPlan,
        cluster_name: str,
        security_group_ids: Sequence[str],
        placement_group_name: str | None,
        reservation_group_arn: str | None,
        self_managed: SelfManaged | None = None,
    ) -> None:
        """Define the template.

        Args:
            scope: Parent.
            id: Construct id.
            plan: The pool.
            cluster_name: Name of the cluster.
            security_group_ids: Groups of every interface.
            placement_group_name: Placement group of the nodes; None without one.
            reservation_group_arn: Resource group of capacity reservations that the instances
                        target; None if they target a reservation by its id, or no reservation.
            self_managed: Values for self-managed nodes; None for managed nodes, where EKS sets
                them.
        """
        super().__init__(scope, id)
        empty = ec2.CfnLaunchTemplate.LaunchTemplateDataProperty()
        # The template
        self.template = ec2.CfnLaunchTemplate(self, "Resource", launch_template_data=empty)
        cluster = self_managed.cluster if self_managed else None
        data = {
            "BlockDeviceMappings": [_root_volume(plan)],
            "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1},
            "TagSpecifications": _tag_specifications(plan, name=f"{cluster_name}-{plan.name}"),
            "UserData": {"Fn::Base64": user_data(plan, cluster=cluster)},
            **_instance_type(plan),
            **_network(plan, security_group_ids),
            **_placement(placement_group_name),
            **_capacity(plan, reservation_group_arn),
        }
        if self_managed is not None:
            data |= _what_eks_fills_in(plan, self_managed)
        # EKS gives managed nodes the cluster security group by itself, but no further group.
        if not plan.network_interfaces and (self_managed or len(security_group_ids) > 1):
            data["SecurityGroupIds"] = list(security_group_ids)
        # Written as one document: typed properties cost a call and a check for each of up to 33
        # interfaces, half the time that the synthesis of a pool takes.
        self.template.add_property_override("LaunchTemplateData", data)
        self.data: Mapping[str, object] = data  # Its `LaunchTemplateData`; may hold tokens


def _root_volume(plan: PoolPlan) -> Mapping[str, object]:
    disk = plan.root_disk
    return {
        "DeviceName": "/dev/xvda",
        "Ebs": {
            "VolumeType": "gp3",
            "VolumeSize": disk.size_gib,
            "Iops": disk.iops,
            "Throughput": disk.throughput_mibps,
            "Encrypted": True,
            **({} if plan.volume_key is None else {"KmsKeyId": plan.volume_key}),
            "DeleteOnTermination": True,
        },
    }


def _tag_specifications(plan: PoolPlan, *, name: str) -> list[Mapping[str, object]]:
    """Return the tags of instances and volumes.

    A managed node group passes its own tags on to neither instances nor volumes, and CloudFormation
    refuses to change the group's tags together with the launch template.

    Source: https://github.com/awsdocs/aws-cloudformation-user-guide/pull/1181
    """
    tags = {"Name": name, **plan.tags}
    listed = [{"Key": key, "Value": value} for key, value in tags.items()]
    return [{"ResourceType": kind, "Tags": listed} for kind in ("instance", "volume")]


def _instance_type(plan: PoolPlan) -> Mapping[str, object]:
    """Return a single instance type; the group names several types, as EKS refuses both."""
    return {"InstanceType": plan.instance_types[0]} if len(plan.instance_types) == 1 else {}


def _network(plan: PoolPlan, security_group_ids: Sequence[str]) -> Mapping[str, object]:
    if not plan.network_interfaces:
        return {}
    interfaces = [_network_interface(nic, security_group_ids) for nic in plan.network_interfaces]
    return {"NetworkInterfaces": interfaces}


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


def _placement(group_name: str | None) -> Mapping[str, object]:
    return {} if group_name is None else {"Placement": {"GroupName": group_name}}


def _capacity(plan: PoolPlan, reservation_group_arn: str | None) -> Mapping[str, object]:
    """Return the capacity that the instances are launched into.

    Spot is requested by the node group: EKS refuses a template that also requests it. Beside a
    target, EC2 accepts only the preference `capacity-reservations-only`; without that preference,
    instances that target a resource group become On-Demand Instances once the group is full.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CapacityReservationSpecification.html
    """
    if plan.reservation is None:
        return {}
    target = (
        {"CapacityReservationId": plan.reservation.id}
        if reservation_group_arn is None
        else {"CapacityReservationResourceGroupArn": reservation_group_arn}
    )
    specification: dict[str, object] = {"CapacityReservationTarget": target}
    if plan.window is not None:
        return {
            "InstanceMarketOptions": {"MarketType": "capacity-block"},
            "CapacityReservationSpecification": specification,
        }
    if not plan.reservation.spill:
        specification["CapacityReservationPreference"] = "capacity-reservations-only"
    return {"CapacityReservationSpecification": specification}


def _what_eks_fills_in(plan: PoolPlan, self_managed: SelfManaged) -> Mapping[str, object]:
    return {
        # The parameter names one release, so its value never changes.
        "ImageId": f"{{{{resolve:ssm:{plan.ami_parameter}}}}}",
        "IamInstanceProfile": {"Arn": self_managed.instance_profile_arn},
    }
