"""API actions that CloudFormation calls to make, change and delete resources, by type.

`handler_permissions.csv` has the actions of the handlers in the schemas of resource types.

Sources:
    https://docs.aws.amazon.com/cloudformation-cli/latest/userguide/resource-type-schema.html
    https://github.com/aws-cloudformation/cfn-lint/tree/v1.58.0/src/cfnlint/data/schemas/resources
    (CloudFormation's resource schemas of 2026-10-20)
"""

from collections.abc import Mapping
from types import MappingProxyType

from ultrascale.catalog._sources import read_table
from ultrascale.errors import CatalogError

_WITHOUT_HANDLERS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        # Source: https://docs.aws.amazon.com/service-authorization/latest/reference/list_awscodebuild.html
        "AWS::CodeBuild::Project": frozenset(
            {
                *("codebuild:BatchGetProjects", "codebuild:CreateProject"),
                *("codebuild:DeleteProject", "codebuild:UpdateProject", "iam:PassRole"),
            }
        ),
        # FSx reads EC2 with the rights of its caller.
        # Sources: https://docs.aws.amazon.com/fsx/latest/LustreGuide/security-iam.html
        # https://docs.aws.amazon.com/aws-managed-policy/latest/reference/AmazonFSxFullAccess.html
        "AWS::FSx::FileSystem": frozenset(
            {
                *("ec2:DescribeNetworkInterfaces", "ec2:DescribeSecurityGroups"),
                *("ec2:DescribeRouteTables", "ec2:DescribeSubnets", "ec2:DescribeVpcs"),
                *("ec2:GetSecurityGroupsForVpc", "fsx:CreateFileSystem"),
                *("fsx:DeleteFileSystem", "fsx:DescribeFileSystems", "fsx:ListTagsForResource"),
                *("fsx:TagResource", "fsx:UntagResource", "fsx:UpdateFileSystem"),
                *("iam:CreateServiceLinkedRole", "kms:CreateGrant", "kms:Decrypt"),
                *("kms:DescribeKey", "kms:GenerateDataKey"),
            }
        ),
    }
)
"""Actions for types whose schemas list no handlers, taken from the services' pages."""

# The schema of log groups has the name of an upload in S3's access logs, which is no IAM action.
# Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/LogFormat.html
_NO_ACTIONS = frozenset({"s3:REST.PUT.OBJECT"})

_STATED: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        row["type"]: frozenset(row["permissions"].split()) - _NO_ACTIONS
        for row in read_table("handler_permissions.csv")
    }
)


def permissions_of(kind: str) -> frozenset[str]:
    """Return the IAM actions that manage resources of a type, such as ``eks:CreateCluster``.

    Raises:
        CatalogError: The catalog has no such type.
    """
    found = _STATED.get(kind) or _WITHOUT_HANDLERS.get(kind)
    if found is None:
        raise CatalogError(f"no source states what {kind} takes of its role")
    return found
