"""Properties that replace a CloudFormation resource when they change, and properties that name it.

`python -m tests.support.create_only_schemas` generates `create_only.csv` from the schemas of the
resource types and from the "Update requires" of their pages, as the CDK's command line ships them.

Sources:
    https://docs.aws.amazon.com/cloudformation-cli/latest/userguide/resource-type-schema.html
    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-template-resource-type-ref.html
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-updating-stacks-update-behaviors.html
    https://github.com/cdklabs/awscdk-service-spec
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ultrascale.catalog._sources import read_table

CUSTOM = ("Custom::", "AWS::CloudFormation::CustomResource")
"""Prefixes of the types of custom resources."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateBehavior:
    """Updates that replace a resource of this type. Paths have `/`, and `*` for each of a list.

    Attributes:
        create_only: A change replaces the resource.
        conditional: A change replaces it or not, as the service decides.
        documented: The page of the type says that a change replaces it, its schema does not.
        name: Properties that together no two resources can have; empty where AWS makes the name.
        deletes_first: Whether the old resource goes before the new one is made.
    """

    create_only: tuple[str, ...]
    conditional: tuple[str, ...]
    documented: tuple[str, ...]
    name: tuple[str, ...]
    deletes_first: bool


# Where the identifier of the schema is AWS's own. Two of them cannot stand beside each other, by
# the API that makes each: a range of a VPC, a route of a table, an address of a NAT gateway.
# Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-name.html
_NAMES: Mapping[str, tuple[str, ...]] = {
    "AWS::ApplicationSignals::ServiceLevelObjective": ("Name",),
    "AWS::CodeBuild::Project": ("Name",),
    "AWS::EC2::LaunchTemplate": ("LaunchTemplateName",),
    "AWS::EC2::NatGateway": ("AllocationId",),
    "AWS::EC2::Route": ("RouteTableId", "DestinationCidrBlock"),
    "AWS::EC2::SecurityGroup": ("VpcId", "GroupName"),
    "AWS::EC2::Subnet": ("VpcId", "CidrBlock"),
    "AWS::EC2::VPCCidrBlock": ("VpcId", "CidrBlock"),
    "AWS::EKS::Nodegroup": ("ClusterName", "NodegroupName"),
    "AWS::EKS::PodIdentityAssociation": ("ClusterName", "Namespace", "ServiceAccount"),
    "AWS::Events::Rule": ("Name",),
    "AWS::FSx::DataRepositoryAssociation": ("FileSystemId", "FileSystemPath"),
    "AWS::IAM::ManagedPolicy": ("ManagedPolicyName",),
    "AWS::SNS::Topic": ("TopicName",),
    "AWS::SQS::Queue": ("QueueName",),
    "AWS::SageMaker::Cluster": ("ClusterName",),
    "AWS::SageMaker::ClusterSchedulerConfig": ("ClusterArn", "Name"),
    "AWS::SageMaker::ComputeQuota": ("ClusterArn", "Name"),
}
# FSx has no request that changes it.
# Source: https://docs.aws.amazon.com/fsx/latest/APIReference/API_UpdateFileSystemLustreConfiguration.html
_ALSO: Mapping[str, tuple[str, ...]] = {"AWS::FSx::FileSystem": ("LustreConfiguration/EfaEnabled",)}

ONLY_GROWS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "AWS::FSx::FileSystem": (
            "LustreConfiguration/MetadataConfiguration/Iops",
            "StorageCapacity",
        ),
        "AWS::EC2::Volume": ("Size",),
        "AWS::RDS::DBInstance": ("AllocatedStorage",),
    }
)
"""Numbers that the service refuses to lower.

Sources:
    https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/USER_PIOPS.ModifyingExisting.html
    https://docs.aws.amazon.com/ebs/latest/userguide/modify-volume-requirements.html
    https://docs.aws.amazon.com/fsx/latest/APIReference/API_UpdateFileSystemLustreMetadataConfiguration.html
    https://docs.aws.amazon.com/fsx/latest/LustreGuide/managing-storage-capacity.html
"""

ONLY_NEWER: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "AWS::EKS::Cluster": MappingProxyType(
            {"Version": "EKS takes no update of a cluster to an earlier version"}
        ),
        "AWS::EKS::Nodegroup": MappingProxyType(
            {
                "ReleaseVersion": "EKS takes no managed group back to an earlier AMI",
                "Version": "EKS takes no managed group back to an earlier version",
            }
        ),
        "AWS::RDS::DBCluster": MappingProxyType(
            {"EngineVersion": "RDS takes no database back to an earlier version"}
        ),
        "AWS::RDS::DBInstance": MappingProxyType(
            {"EngineVersion": "RDS takes no database back to an earlier version"}
        ),
    }
)
"""Versions that the service refuses to lower, with its rule.

EKS's own rollback of a control plane, for some days after an upgrade, is no update of the version.

Sources:
    https://docs.aws.amazon.com/eks/latest/userguide/update-cluster.html
    https://docs.aws.amazon.com/eks/latest/userguide/update-managed-node-group.html
    https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/USER_UpgradeDBInstance.Upgrading.html
"""

ONE_MINOR_AT_ONCE: Mapping[str, str] = MappingProxyType({"AWS::EKS::Cluster": "Version"})
"""Versions that the service raises by one minor alone.

Source: https://docs.aws.amazon.com/eks/latest/userguide/update-cluster.html
"""

ONE_WAY: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "AWS::EKS::Cluster": MappingProxyType(
            {
                "AccessConfig/AuthenticationMode": ("CONFIG_MAP", "API_AND_CONFIG_MAP", "API"),
                "ControlPlaneEgressMode": ("AWS_MANAGED", "CUSTOMER_ROUTED"),
            }
        )
    }
)
"""Choices that the service takes in this order alone.

Source: https://docs.aws.amazon.com/eks/latest/userguide/setting-up-access-entries.html
"""

MAJOR_ONLY_IF: Mapping[str, tuple[str, str]] = MappingProxyType(
    {"AWS::RDS::DBInstance": ("EngineVersion", "AllowMajorVersionUpgrade")}
)
"""A version whose major part the service raises only if another property is true.

Of Aurora's clusters CloudFormation sets it by itself.

Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-rds-dbinstance.html
"""

INTERRUPTING: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "AWS::RDS::DBCluster": ("DBClusterParameterGroupName", "EngineVersion", "Port"),
        "AWS::RDS::DBInstance": (
            "CACertificateIdentifier",
            "DBInstanceClass",
            "DBParameterGroupName",
            "EngineVersion",
            "StorageType",
        ),
    }
)
"""Properties whose update interrupts the service, at once and outside of any window.

CloudFormation applies changes immediately, as "Some interruptions" on the types' pages says.

Sources:
    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-rds-dbcluster.html
    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-rds-dbinstance.html
"""

CHANGING_ATTRIBUTES: Mapping[str, frozenset[str]] = MappingProxyType(
    {"AWS::EC2::LaunchTemplate": frozenset({"LatestVersionNumber", "DefaultVersionNumber"})}
)
"""Attributes that change although their resource stays."""


def lookup_update_behavior(resource_type: str) -> UpdateBehavior | None:
    """Return what an update of a resource type replaces; None where the table does not have it."""
    return _BEHAVIORS.get(resource_type)


def _behavior(row: Mapping[str, str]) -> UpdateBehavior:
    kind = row["type"]
    return UpdateBehavior(
        create_only=tuple(row["create_only"].split()),
        conditional=tuple(row["conditional"].split()),
        documented=(*row["documented"].split(), *_ALSO.get(kind, ())),
        name=tuple(row["identifier"].split()) or _NAMES.get(kind, ()),
        deletes_first=row["deletes_first"] == "yes",
    )


_BEHAVIORS: Mapping[str, UpdateBehavior] = MappingProxyType(
    {row["type"]: _behavior(row) for row in read_table("create_only.csv")}
)
