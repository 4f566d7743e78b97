"""CloudFormation: limits, create-only properties, calls of its handlers, managed policies.

Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
"""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

import msgspec

from ultrascale.catalog.tables import Row, read_document, read_rows, read_table
from ultrascale.errors import CatalogError

# Limits, fixed unless their text names a quota.
RESOURCES_PER_STACK = 500
OUTPUTS_PER_STACK = 200

STACKS = 2_000
"""Most stacks of an account in a Region: a quota, before AWS raises it."""

TEMPLATE_BYTES = 1_000_000
"""Most bytes of a template: 1 MB."""


# --- Properties whose change replaces a CloudFormation resource, and properties that form its name
# `python -m tests.support.create_only_schemas` generates `create_only.csv` from the schemas of the
# resource types and the "Update requires" of their pages, which the CDK's command line includes.
#
# Sources:
#     https://docs.aws.amazon.com/cloudformation-cli/latest/userguide/resource-type-schema.html
#     https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-template-resource-type-ref.html
#     https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-updating-stacks-update-behaviors.html
#     https://github.com/cdklabs/awscdk-service-spec


CUSTOM = ("Custom::", "AWS::CloudFormation::CustomResource")
"""Prefixes of the types of custom resources."""


class UpdateBehavior(Row, frozen=True, kw_only=True):
    """Updates that replace resources of a type; paths have `/`, and `*` for items of lists."""

    type: str
    create_only: tuple[str, ...] = ()
    """Properties whose change replaces the resource."""
    conditional: tuple[str, ...] = ()
    """Properties whose change replaces the resource if the service so decides."""
    documented: tuple[str, ...] = ()
    """Properties whose change replaces the resource by its type's page, but not by the schema."""
    name: tuple[str, ...] = msgspec.field(name="identifier", default=())
    """Properties that together form the resource's unique name; empty if AWS makes the name."""
    deletes_first: bool
    """Whether the old resource is deleted before the new one is created."""


class UpdateRules(Row, frozen=True, kw_only=True):
    """Rules by which services accept, refuse or interrupt updates, by resource type."""

    names: dict[str, tuple[str, ...]]
    """Properties that name a resource whose identifier in the schema is AWS's own.

    The API refuses a second resource with the same values: a range of a VPC, a route of a
    table, an address of a NAT gateway.

    Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-name.html
    """

    documented_too: dict[str, tuple[str, ...]]
    """Properties whose change replaces, although no page says so: FSx cannot change them.

    Source: https://docs.aws.amazon.com/fsx/latest/APIReference/API_UpdateFileSystemLustreConfiguration.html
    """

    only_grows: dict[str, tuple[str, ...]]
    """Numbers that the service refuses to lower.

    Sources:
        https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/USER_PIOPS.ModifyingExisting.html
        https://docs.aws.amazon.com/ebs/latest/userguide/modify-volume-requirements.html
        https://docs.aws.amazon.com/fsx/latest/APIReference/API_UpdateFileSystemLustreMetadataConfiguration.html
        https://docs.aws.amazon.com/fsx/latest/LustreGuide/managing-storage-capacity.html
    """

    only_newer: dict[str, dict[str, str]]
    """Versions that the service refuses to lower, with the rule.

    EKS's own rollback of a control plane, for some days after an upgrade, is no update of the
    version.

    Sources:
        https://docs.aws.amazon.com/eks/latest/userguide/update-cluster.html
        https://docs.aws.amazon.com/eks/latest/userguide/update-managed-node-group.html
        https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/USER_UpgradeDBInstance.Upgrading.html
    """

    one_minor_at_once: dict[str, str]
    """Versions that the service raises by only one minor at a time.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/update-cluster.html
    """

    one_way: dict[str, dict[str, tuple[str, ...]]]
    """Settings whose value the service changes only in this order.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/setting-up-access-entries.html
    """

    major_only_if: dict[str, tuple[str, str]]
    """A version whose major part the service raises only if another property is true.

    For Aurora's clusters CloudFormation sets that property itself.

    Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-rds-dbinstance.html
    """

    interrupting: dict[str, tuple[str, ...]]
    """Properties whose update interrupts the service, outside any maintenance window.

    CloudFormation applies changes immediately, as "Some interruptions" on the types' pages says.

    Sources:
        https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-rds-dbcluster.html
        https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-rds-dbinstance.html
    """

    changing_attributes: dict[str, tuple[str, ...]]
    """Attributes whose value changes although the resource stays."""


@cache
def update_rules() -> UpdateRules:
    """Return the rules of the services for updates."""
    return read_document("update_rules.json", UpdateRules)


def lookup_update_behavior(resource_type: str) -> UpdateBehavior | None:
    """Return the update behavior of a resource type; None where the table lacks it."""
    return _behaviors().get(resource_type)


@cache
def _behaviors() -> Mapping[str, UpdateBehavior]:
    rules = update_rules()
    return {
        row.type: msgspec.structs.replace(
            row,
            documented=(*row.documented, *rules.documented_too.get(row.type, ())),
            name=row.name or rules.names.get(row.type, ()),
        )
        for row in read_rows("create_only.csv", UpdateBehavior)
    }


# --- API actions that CloudFormation calls to make, change and delete resources, by type ----------
# `handler_permissions.csv` has the actions of the handlers in the schemas of resource types.
#
# Sources:
#     https://docs.aws.amazon.com/cloudformation-cli/latest/userguide/resource-type-schema.html
#     https://github.com/aws-cloudformation/cfn-lint/tree/v1.58.0/src/cfnlint/data/schemas/resources
#     (CloudFormation's resource schemas of 2026-10-20)


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


# --- Actions of the stacks' AWS managed policies; a permissions boundary must allow them ----------
# Source: https://docs.aws.amazon.com/aws-managed-policy/latest/reference/policy-list.html


_ALLOWED: Mapping[str, str] = MappingProxyType(
    {
        "AWSLambdaBasicExecutionRole": "logs:*",
        "AWSLambdaVPCAccessExecutionRole": "ec2:* logs:*",
        "AmazonEBSCSIDriverPolicyV2": "ec2:*",
        "AmazonEC2ContainerRegistryPullOnly": "ecr:*",
        "AmazonEC2ContainerRegistryReadOnly": "ecr:*",
        "AmazonEKSBlockStoragePolicy": "ec2:*",
        "AmazonEKSClusterPolicy": (
            "autoscaling:* ec2:* elasticloadbalancing:* iam:CreateServiceLinkedRole kms:*"
        ),
        "AmazonEKSComputePolicy": (
            "ec2:* iam:AddRoleToInstanceProfile iam:CreateServiceLinkedRole iam:PassRole"
        ),
        "AmazonEKSLoadBalancingPolicy": (
            "acm:* cognito-idp:* ec2:* elasticloadbalancing:* iam:CreateServiceLinkedRole "
            "shield:* wafv2:*"
        ),
        "AmazonEKSNetworkingPolicy": "ec2:*",
        "AmazonEKSWorkerNodeMinimalPolicy": "eks-auth:*",
        "AmazonEKSWorkerNodePolicy": "ec2:* eks:* eks-auth:*",
        "AmazonEKS_CNI_Policy": "ec2:*",
        "AmazonElasticContainerRegistryPublicReadOnly": "ecr-public:* sts:GetServiceBearerToken",
        "AmazonSSMManagedInstanceCore": "ec2messages:* ssm:* ssmmessages:*",
        "AmazonSageMakerClusterInstanceRolePolicy": "cloudwatch:* logs:* s3:* ssmmessages:*",
        "AmazonSageMakerHyperPodTrainingOperatorAccess": "sagemaker:*",
        "CloudWatchAgentServerPolicy": "cloudwatch:* ec2:* logs:* ssm:* xray:*",
    }
)
"""Services that each policy allows; for IAM and STS, which pass on rights, single actions."""


def allowed_by(policy: str) -> frozenset[str]:
    """Return the actions that an AWS managed policy allows, such as ``ec2:*`` or ``iam:PassRole``.

    Raises:
        CatalogError: The catalog has no such policy.
    """
    if policy not in _ALLOWED:
        raise CatalogError(f"no source states what the AWS managed policy {policy} allows")
    return frozenset(_ALLOWED[policy].split())
