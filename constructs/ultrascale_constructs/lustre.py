"""FSx for Lustre file systems."""

from aws_cdk import CfnResource, RemovalPolicy, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultrascale.plan.model import LustrePlan
from ultrascale_constructs.cluster_context import ClusterContext


class LustreFileSystem(Construct):
    """Defines one file system that outlives its stack."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: LustrePlan,
        key: kms.IKey,
        cluster: ClusterContext,
        subnet_id: str,
    ) -> None:
        super().__init__(scope, id)
        clients = ec2.SecurityGroup.from_security_group_id(
            self, "Clients", cluster.security_group_id
        )
        servers = self._servers(plan, cluster.vpc, clients)
        file_system = fsx.CfnFileSystem(
            self,
            "Resource",
            file_system_type="LUSTRE",
            file_system_type_version=plan.lustre_version,
            storage_type="SSD",
            storage_capacity=plan.capacity_gib,
            subnet_ids=[subnet_id],
            security_group_ids=[servers.security_group_id],
            kms_key_id=key.key_arn,
            lustre_configuration=_configuration(plan),
        )
        Tags.of(file_system).add("Name", self.node.path)
        # Not retained after a failed first attempt: the file system is empty, and would cost money.
        file_system.apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
        # FSx tests the ports while it creates the file system, and fails if they are closed.
        file_system.node.add_dependency(servers, clients)
        self.file_system_id = file_system.ref  # Its id
        self.dns_name = file_system.attr_dns_name  # DNS name that clients mount
        self.mount_name = file_system.attr_lustre_mount_name  # Lustre mount name

    def _servers(
        self, plan: LustrePlan, vpc: ec2.IVpc, clients: ec2.ISecurityGroup
    ) -> ec2.SecurityGroup:
        """Define the servers' group: Lustre's ports between servers, and to and from clients.

        Source: https://docs.aws.amazon.com/fsx/latest/LustreGuide/limit-access-security-groups.html
        """
        servers = ec2.SecurityGroup(
            self,
            "SecurityGroup",
            vpc=vpc,
            description=f"Lustre servers of {plan.name}",
            allow_all_outbound=False,
        )
        every = [ec2.Port.tcp_range(first, last) for first, last in plan.port_ranges]
        for ports in every:
            servers.add_ingress_rule(servers, ports, "Lustre")
            servers.add_egress_rule(servers, ports, "Lustre")
        # The retained file system's interfaces keep using the group and these rules. The rules for
        # clients go with the stack, as they would keep EKS from deleting the clients' group.
        for child in servers.node.find_all():
            if isinstance(child, CfnResource):
                child.apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
        for ports in every:
            servers.add_ingress_rule(clients, ports, "Lustre")
            servers.add_egress_rule(clients, ports, "Lustre")
            clients.add_ingress_rule(servers, ports, "Lustre")
        return servers


def _configuration(plan: LustrePlan) -> fsx.CfnFileSystem.LustreConfigurationProperty:
    return fsx.CfnFileSystem.LustreConfigurationProperty(
        deployment_type=plan.deployment_type,
        per_unit_storage_throughput=plan.throughput_mbps_per_tib,
        data_compression_type=plan.data_compression,
        automatic_backup_retention_days=plan.backup_retention_days,
        copy_tags_to_backups=True,
        # Metadata IOPS can be raised later, but not added to a file system without them.
        metadata_configuration=fsx.CfnFileSystem.MetadataConfigurationProperty(mode="AUTOMATIC"),
    )
