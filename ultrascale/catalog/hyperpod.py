"""Amazon SageMaker HyperPod on EKS: instance types, Regions, limits, labels and network.

Sources:
    https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-prerequisites.html
    https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateCluster.html
    https://github.com/aws-cloudformation/cfn-lint/tree/v1.58.0/src/cfnlint/data/schemas
    (CloudFormation's resource schemas of 2026-10-20: `GOVERNANCE_REGIONS`)
"""

from collections.abc import Mapping
from types import MappingProxyType

from ultrascale.catalog import training_plans
from ultrascale.catalog.instance_types import INSTANCE_TYPES

# Prefix of an instance type in HyperPod's APIs, and in the node label's value.
TYPE_PREFIX = training_plans.TYPE_PREFIX

# Regions where CloudFormation has AWS::SageMaker::Cluster.
REGIONS = frozenset(
    {
        *("ap-northeast-1", "ap-northeast-2", "ap-south-1", "ap-south-2"),
        *("ap-southeast-1", "ap-southeast-2", "ap-southeast-3", "ap-southeast-4"),
        *("ca-central-1", "eu-central-1", "eu-north-1", "eu-south-2", "eu-west-1", "eu-west-2"),
        *("sa-east-1", "us-east-1", "us-east-2", "us-west-1", "us-west-2"),
    }
)
# Regions where CloudFormation has both AWS::SageMaker::ClusterSchedulerConfig and
# AWS::SageMaker::ComputeQuota; other Regions have at most one of them.
GOVERNANCE_REGIONS = frozenset({"ap-south-1", "eu-central-1", "us-east-1"})

# Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ClusterInstanceGroupSpecification.html
INSTANCES_PER_GROUP = 6_758
GROUPS_PER_CLUSTER = 100
TYPES_PER_GROUP = 20
# Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ClusterKubernetesConfig.html
LABELS_PER_GROUP = 50
# Most EBS volumes and file systems together.
STORAGE_PER_GROUP = 4
# Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_VpcConfig.html
SUBNETS_PER_GROUP = 16

# All checks that CloudFormation knows. They run for one to two hours before a node takes work, and
# the group may have no taints of its own.
# Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-resiliency-deep-health-checks.html
DEEP_HEALTH_CHECKS = ("InstanceStress", "InstanceConnectivity")

# Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_PriorityClass.html
PRIORITY_CLASSES = 10
# Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ComputeQuotaConfig.html
TYPES_PER_QUOTA = 15
PRIORITY_WEIGHTS = (0, 100)

# Label and taint that HyperPod itself sets on its nodes.
# Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-resiliency-node-labels.html
HEALTH_STATUS = "sagemaker.amazonaws.com/node-health-status"
HEALTHY = "Schedulable"
UNDER_CHECKS = "Unschedulable"
DEEP_HEALTH_STATUS = "sagemaker.amazonaws.com/deep-health-check-status"
DEEP_HEALTHY = "Passed"
COMPUTE_TYPE = "sagemaker.amazonaws.com/compute-type"
COMPUTE_TYPE_HYPERPOD = "hyperpod"

NODE_RECOVERY: Mapping[str, str] = MappingProxyType({"automatic": "Automatic", "none": "None"})

# Where HyperPod mounts a second EBS volume.
# Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ClusterEbsVolumeConfig.html
VOLUME_MOUNT = "/opt/sagemaker"


def has(instance_type: str) -> bool:
    """Return whether HyperPod offers a type in any Region; false for types outside the catalog."""
    spec = INSTANCE_TYPES.get(instance_type)
    return spec is not None and spec.hyperpod
