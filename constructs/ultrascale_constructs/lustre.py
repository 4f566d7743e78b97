"""FSx for Lustre file systems, and their links to S3 buckets."""

from aws_cdk import CfnResource, RemovalPolicy, Stack, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultrascale.plan.model import DataRepositoryPlan, LustrePlan
from ultrascale_constructs.bucket import Bucket
from ultrascale_constructs.cdk_types import anyone
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.existing_storage import ExistingBucket


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


# --- Links between FSx for Lustre file systems and S3 buckets -------------------------------------


# Actions of FSx's role on the key of a bucket.
# Source: https://docs.aws.amazon.com/fsx/latest/LustreGuide/s3-server-side-encryption-support.html
_KEY_ACTIONS = (
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:Encrypt",
    "kms:GenerateDataKey*",
    "kms:ReEncrypt*",
)


class DataRepository(Construct):
    """Defines the link by which a file system shows the objects of a bucket as files.

    The link is deleted with its stack; the file system and the bucket stay. Once the cluster file
    no longer names the link, a change on one side must not reach the other side. FSx could delete
    data together with a link, but CloudFormation cannot request it.

    Only the events can change later. FSx allows no second link for the same paths, and
    CloudFormation creates a new resource before it deletes the old one, so it cannot replace a
    link.

    Sources:
        https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-fsx-datarepositoryassociation.html
        https://docs.aws.amazon.com/fsx/latest/APIReference/API_DeleteDataRepositoryAssociation.html
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: DataRepositoryPlan,
        file_system_id: str,
        bucket: Bucket | ExistingBucket,
    ) -> None:
        super().__init__(scope, id)
        link = fsx.CfnDataRepositoryAssociation(
            self,
            "Resource",
            file_system_id=file_system_id,
            file_system_path=plan.path,
            data_repository_path="/".join(
                filter(None, (f"s3://{bucket.bucket_name}", plan.prefix))
            ),
            # Otherwise existing objects would become files only when they change.
            batch_import_meta_data_on_create=True,
            s3=_events(plan),
        )
        # FSx checks its access while it makes the link, so the policy must exist before the link.
        link.node.add_dependency(bucket)


def grant_to_file_systems(key: kms.IKey) -> None:
    """Let the account's file systems use ``key`` for objects of linked buckets.

    FSx creates a role for each file system at its first link. The key exists before, so its policy
    cannot name these roles.

    Source: https://docs.aws.amazon.com/fsx/latest/LustreGuide/s3-server-side-encryption-support.html
    """
    stack = Stack.of(key)
    role = (
        f"arn:{stack.partition}:iam::{stack.account}:role/aws-service-role/"
        "s3.data-source.lustre.fsx.amazonaws.com/AWSServiceRoleForFSxS3Access_fs-*"
    )
    key.add_to_resource_policy(
        iam.PolicyStatement(
            sid="ObjectsOfLinkedFileSystems",
            principals=[anyone()],
            actions=list(_KEY_ACTIONS),
            resources=["*"],
            conditions={
                "StringEquals": {
                    "kms:CallerAccount": stack.account,
                    "kms:ViaService": f"s3.{stack.region}.{stack.url_suffix}",
                },
                "ArnLike": {"aws:PrincipalArn": role},
            },
        )
    )


def _events(plan: DataRepositoryPlan) -> fsx.CfnDataRepositoryAssociation.S3Property | None:
    association = fsx.CfnDataRepositoryAssociation
    imports, exports = list(plan.import_events), list(plan.export_events)
    if not imports and not exports:
        return None
    return association.S3Property(
        auto_import_policy=association.AutoImportPolicyProperty(events=imports)
        if imports
        else None,
        auto_export_policy=association.AutoExportPolicyProperty(events=exports)
        if exports
        else None,
    )
