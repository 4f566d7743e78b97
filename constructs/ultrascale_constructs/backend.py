"""The PostgreSQL database of the backend, on Aurora Serverless v2 or RDS."""

from collections.abc import Sequence

from aws_cdk import ArnFormat, CfnResource, RemovalPolicy, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_rds as rds
from constructs import Construct

from ultrascale.parts.backend.model import DatabasePlan, InstanceCapacity, ServerlessCapacity
from ultrascale_constructs.acknowledgment import (
    acknowledge,
    acknowledge_managed_policies,
    acknowledge_wildcards,
)
from ultrascale_constructs.cdk_types import answer_in_time, as_construct, child
from ultrascale_constructs.cluster_context import ClusterContext
from ultrascale_constructs.pod_identity import Permission

# When extended support ends, RDS makes a major upgrade on a day that RDS chooses.
_SUPPORT = "open-source-rds-extended-support"


class Database(Construct):
    """Defines a database that outlives its stack and that nothing outside the VPC reaches.

    No resource has a fixed name: a replacement could not exist beside the retained resource. No key
    of the cluster file changes properties that replace the database: its KMS key, name, user and
    subnet group. All resources are retained, even after a failed first attempt: a rollback cannot
    delete a protected database.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        plan: DatabasePlan,
        key: kms.IKey,
        cluster: ClusterContext,
    ) -> None:
        super().__init__(scope, id)
        self._plan = plan
        self._key = key
        self._subnets = rds.CfnDBSubnetGroup(
            self,
            "Subnets",
            db_subnet_group_description=f"Private subnets for database {plan.name}",
            subnet_ids=list(cluster.private_subnet_ids),
        )
        self._subnets.apply_removal_policy(RemovalPolicy.RETAIN)
        self._group_id = self._security_group(cluster)
        capacity = plan.capacity
        if isinstance(capacity, ServerlessCapacity):
            members = self._cluster(capacity)
            self.host = members.attr_endpoint_address  # DNS name of the endpoint that writes
            # RDS's id of the database, with which IAM names its users
            self.resource_id = members.attr_db_cluster_resource_id
            secret_arn = members.attr_master_user_secret_secret_arn
            log_groups = f"/aws/rds/cluster/{members.ref}"
        else:
            instance = self._instance(capacity)
            self.host = instance.attr_endpoint_address
            self.resource_id = instance.attr_dbi_resource_id
            secret_arn = instance.attr_master_user_secret_secret_arn
            log_groups = f"/aws/rds/instance/{instance.ref}"
        # Secret with the password of the database's user; None where the user logs in by IAM
        self.secret_arn = secret_arn if plan.login == "secret" else None
        self._keep_logs(log_groups)

    @property
    def permissions(self) -> Sequence[Permission]:
        """Permissions that let the database's user log in, and nothing else.

        Source: https://docs.aws.amazon.com/secretsmanager/latest/userguide/security-encryption.html
        Source: https://docs.aws.amazon.com/AmazonRDS/latest/AuroraUserGuide/UsingWithRDS.IAMDBAuth.IAMPolicy.html
        """
        stack = Stack.of(self)
        if self.secret_arn is None:
            user = stack.format_arn(
                service="rds-db",
                resource="dbuser",
                resource_name=f"{self.resource_id}/{self._plan.name}",
                arn_format=ArnFormat.COLON_RESOURCE_NAME,
            )
            return [Permission(actions=["rds-db:connect"], resources=[user])]
        asked_by = f"secretsmanager.{stack.region}.amazonaws.com"
        return [
            Permission(actions=["secretsmanager:GetSecretValue"], resources=[self.secret_arn]),
            Permission(
                actions=["kms:Decrypt"],
                resources=[self._key.key_arn],
                conditions={
                    "StringEquals": {
                        "kms:ViaService": asked_by,
                        "kms:EncryptionContext:SecretARN": self.secret_arn,
                    }
                },
            ),
        ]

    def _security_group(self, cluster: ClusterContext) -> str:
        """Define the group that opens PostgreSQL's port to nodes and pods, and return its id."""
        group = ec2.SecurityGroup(
            self,
            "SecurityGroup",
            vpc=cluster.vpc,
            description=f"PostgreSQL of database {self._plan.name}",
            allow_all_outbound=False,
        )
        # The retained database's interfaces keep the group. The rule for its clients goes with the
        # stack, as it would keep EKS from deleting the clients' group.
        for resource in group.node.find_all():
            if isinstance(resource, CfnResource):
                resource.apply_removal_policy(RemovalPolicy.RETAIN)
        ec2.CfnSecurityGroupIngress(
            self,
            "FromNodes",
            group_id=group.security_group_id,
            ip_protocol="tcp",
            from_port=self._plan.port,
            to_port=self._plan.port,
            source_security_group_id=cluster.security_group_id,
            description="PostgreSQL from nodes and pods",
        )
        return group.security_group_id

    def _cluster(self, capacity: ServerlessCapacity) -> rds.CfnDBCluster:
        plan = self._plan
        parameters = rds.CfnDBClusterParameterGroup(
            self,
            "Parameters",
            family=plan.parameter_group_family,
            description=f"Database {plan.name}",
            parameters=dict(plan.parameters),
        )
        parameters.apply_removal_policy(RemovalPolicy.RETAIN)
        insights = plan.insights_days is not None
        cluster = rds.CfnDBCluster(
            self,
            "Cluster",
            engine=plan.engine,
            engine_version=plan.version,
            db_cluster_parameter_group_name=parameters.ref,
            database_name=plan.name,
            port=plan.port,
            master_username=plan.name,
            db_subnet_group_name=self._subnets.ref,
            vpc_security_group_ids=[self._group_id],
            serverless_v2_scaling_configuration=rds.CfnDBCluster.ServerlessV2ScalingConfigurationProperty(
                min_capacity=capacity.min_acu,
                max_capacity=capacity.max_acu,
                seconds_until_auto_pause=capacity.pause_seconds,
            ),
            performance_insights_enabled=insights,
            performance_insights_kms_key_id=self._key.key_arn if insights else None,
            performance_insights_retention_period=plan.insights_days,
        )
        self._protect(cluster)
        self._members(cluster, capacity)
        return cluster

    def _members(self, cluster: rds.CfnDBCluster, capacity: ServerlessCapacity) -> None:
        """Define the instances, which are deleted with the stack: the data belongs to the cluster.

        Source: https://docs.aws.amazon.com/AmazonRDS/latest/AuroraUserGuide/USER_DeleteCluster.html
        """
        for number in range(1, capacity.instances + 1):
            instance = rds.CfnDBInstance(
                self,
                f"Instance{number}",
                db_cluster_identifier=cluster.ref,
                engine=self._plan.engine,
                db_instance_class=capacity.instance_class,
                auto_minor_version_upgrade=self._plan.minor_upgrades,
                publicly_accessible=False,
                # The reader has the writer's capacity, so that it can take over under load.
                # Source: https://docs.aws.amazon.com/AmazonRDS/latest/AuroraUserGuide/aurora-serverless-v2.how-it-works.html
                promotion_tier=1,
            )
            instance.apply_removal_policy(RemovalPolicy.DESTROY)

    def _instance(self, capacity: InstanceCapacity) -> rds.CfnDBInstance:
        plan = self._plan
        parameters = rds.CfnDBParameterGroup(
            self,
            "Parameters",
            family=plan.parameter_group_family,
            description=f"Database {plan.name}",
            parameters=dict(plan.parameters),
        )
        parameters.apply_removal_policy(RemovalPolicy.RETAIN)
        insights = plan.insights_days is not None
        instance = rds.CfnDBInstance(
            self,
            "Instance",
            engine=plan.engine,
            engine_version=plan.version,
            db_parameter_group_name=parameters.ref,
            db_instance_class=capacity.instance_class,
            multi_az=capacity.multi_az,
            storage_type="gp3",
            allocated_storage=str(capacity.storage_gib),
            max_allocated_storage=capacity.max_storage_gib,
            db_name=plan.name,
            port=str(plan.port),
            master_username=plan.name,
            db_subnet_group_name=self._subnets.ref,
            vpc_security_groups=[self._group_id],
            publicly_accessible=False,
            enable_performance_insights=insights,
            performance_insights_kms_key_id=self._key.key_arn if insights else None,
            performance_insights_retention_period=plan.insights_days,
        )
        self._protect(instance)
        self._acknowledge_instance(instance, capacity)
        return instance

    def _acknowledge_instance(
        self, instance: rds.CfnDBInstance, capacity: InstanceCapacity
    ) -> None:
        reason = "its security group says who connects; another port would hide it from nobody"
        acknowledge(instance, {"AwsSolutions::AwsSolutions-RDS11": reason})
        if not capacity.multi_az:
            reason = "the cluster file asks for one instance, by database.multi_az: false"
            acknowledge(instance, {"AwsSolutions::AwsSolutions-RDS3": reason})
        if self._plan.minor_upgrades:
            # cfn-lint calls a major version deprecated as soon as one of its minors is.
            # Source: https://github.com/aws-cloudformation/cfn-lint/pull/3850
            instance.add_metadata("cfn-lint", {"config": {"ignore_checks": ["W3691"]}})

    def _protect(self, database: rds.CfnDBCluster | rds.CfnDBInstance) -> None:
        """Encrypt and retain the data, and set how the user logs in."""
        plan = self._plan
        database.apply_removal_policy(RemovalPolicy.RETAIN)
        database.deletion_protection = True
        database.storage_encrypted = True
        database.kms_key_id = self._key.key_arn
        database.backup_retention_period = plan.backup_retention_days
        database.copy_tags_to_snapshot = True
        database.delete_automated_backups = False
        database.enable_cloudwatch_logs_exports = list(plan.log_types)
        database.database_insights_mode = "standard"
        database.auto_minor_version_upgrade = plan.minor_upgrades
        database.engine_lifecycle_support = _SUPPORT
        database.enable_iam_database_authentication = True
        if plan.login == "iam":
            database.master_user_authentication_type = "iam-db-auth"
        else:
            database.manage_master_user_password = True
            database.add_property_override("MasterUserSecret.KmsKeyId", self._key.key_arn)

    def _keep_logs(self, prefix: str) -> None:
        """Set the retention of the database's log groups: RDS creates them without any."""
        stack = Stack.of(self)
        before = set(stack.node.children)
        for log_type in self._plan.log_types:
            group = logs.LogRetention(
                self,
                f"Logs{log_type.capitalize()}",
                log_group_name=f"{prefix}/{log_type}",
                # Replaced below: the argument takes a member of an enumeration, not a number.
                retention=logs.RetentionDays.THREE_MONTHS,
            )
            resource = answer_in_time(child(group, CfnResource, "Resource"))
            resource.add_property_override("RetentionInDays", self._plan.log_retention_days)
        for added in set(stack.node.children) - before:
            provider = as_construct(added)
            reason = "part of the CDK's own function, which sets the retention of any log group"
            acknowledge_managed_policies(
                provider, {"service-role/AWSLambdaBasicExecutionRole": reason}
            )
            acknowledge_wildcards(provider, {"*": reason})
