"""Links between FSx for Lustre file systems and S3 buckets."""

from aws_cdk import Stack
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from ultrascale.plan.model import DataRepositoryPlan
from ultrascale_constructs.bucket import Bucket
from ultrascale_constructs.cdk_types import anyone
from ultrascale_constructs.existing_storage import ExistingBucket

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

    Source:
    https://docs.aws.amazon.com/fsx/latest/LustreGuide/s3-server-side-encryption-support.html
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
