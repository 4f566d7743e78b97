"""Actions on KMS keys that AWS's services and the roles that call them need.

A policy that names a role which is not there yet is refused, so that statements for roles of the
stacks name everybody, and hold their ARN, account and service in conditions, as the policies of
AWS's own managed keys do.

Sources:
    https://docs.aws.amazon.com/kms/latest/developerguide/key-policy-modifying.html
    https://docs.aws.amazon.com/kms/latest/developerguide/conditions-kms.html#conditions-kms-via-service
"""

from collections.abc import Mapping
from types import MappingProxyType

AUTO_SCALING_SOURCE = (
    "https://docs.aws.amazon.com/autoscaling/ec2/userguide/key-policy-requirements-EBS-encryption"
    ".html"
)
KARPENTER_SOURCE = "https://karpenter.sh/docs/troubleshooting/"
AUTO_MODE_SOURCE = "https://docs.aws.amazon.com/eks/latest/userguide/auto-kms.html"
EBS_CSI_SOURCE = (
    "https://github.com/kubernetes-sigs/aws-ebs-csi-driver/blob/master/docs/example-iam-policy.json"
)
SPOT_SOURCE = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-requests.html"
HYPERPOD_SOURCE = "https://docs.aws.amazon.com/sagemaker/latest/dg/smcluster-cmk.html"
EKS_SOURCE = "https://docs.aws.amazon.com/eks/latest/userguide/enable-kms.html"
FSX_SOURCE = "https://docs.aws.amazon.com/fsx/latest/LustreGuide/encryption-at-rest.html"
FSX_S3_SOURCE = (
    "https://docs.aws.amazon.com/fsx/latest/LustreGuide/s3-server-side-encryption-support.html"
)
S3_SOURCE = "https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html"
RDS_SOURCE = "https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/Overview.Encryption.Keys.html"
RDS_SECRET_SOURCE = (
    "https://docs.aws.amazon.com/AmazonRDS/latest/UserGuide/rds-secrets-manager.html"
)
SECRETS_MANAGER_SOURCE = (
    "https://docs.aws.amazon.com/secretsmanager/latest/userguide/security-encryption.html"
)
ECR_SOURCE = "https://docs.aws.amazon.com/AmazonECR/latest/userguide/encryption-at-rest.html"
CODEBUILD_SOURCE = "https://docs.aws.amazon.com/codebuild/latest/userguide/setting-up-kms.html"
LOGS_SOURCE = "https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/encrypt-log-data-kms.html"
SNS_SOURCE = "https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html"
PROMETHEUS_SOURCE = "https://docs.aws.amazon.com/prometheus/latest/userguide/encryption-at-rest-Amazon-Service-Prometheus.html"

CREATE_GRANT = "kms:CreateGrant"
# Of volumes: with a grant for the instance that the volume is attached to.
VOLUME_USE = (
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:Encrypt",
    "kms:GenerateDataKey*",
    "kms:ReEncrypt*",
)
VOLUME_LEAST = (
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:GenerateDataKeyWithoutPlaintext",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
)
# CloudFormation's schema of a HyperPod cluster names both for who makes it as well.
HYPERPOD_USE = (CREATE_GRANT, "kms:DescribeKey")
EKS_USE = (CREATE_GRANT, "kms:DescribeKey")
FSX_USE = (CREATE_GRANT, "kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKey*")
# Of data keys AWS names another one for each service of FSx.
FSX_LEAST = (CREATE_GRANT, "kms:DescribeKey")
OBJECT_READ = ("kms:Decrypt",)
OBJECT_USE = ("kms:Decrypt", "kms:GenerateDataKey")
LINKED_OBJECT_USE = VOLUME_USE
RDS_USE = (CREATE_GRANT, "kms:DescribeKey")
SECRET_USE = (CREATE_GRANT, "kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKey")
ECR_USE = (CREATE_GRANT, "kms:DescribeKey", "kms:RetireGrant")
BUILD_USE = (
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:Encrypt",
    "kms:GenerateDataKey",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
)
LOGS_USE = (
    "kms:Decrypt*",
    "kms:Describe*",
    "kms:Encrypt*",
    "kms:GenerateDataKey*",
    "kms:ReEncrypt*",
)
LOGS_LEAST = ("kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey")
TOPIC_USE = ("kms:Decrypt", "kms:GenerateDataKey*")
PROMETHEUS_USE = (CREATE_GRANT, "kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKey")

GRANT_OPERATIONS = (
    "CreateGrant",
    "Decrypt",
    "DescribeKey",
    "Encrypt",
    "GenerateDataKey",
    "GenerateDataKeyWithoutPlaintext",
    "ReEncryptFrom",
    "ReEncryptTo",
)
"""Operations of a grant for a role that launches instances with encrypted volumes.

Source: AUTO_SCALING_SOURCE.
"""

LINKED_ROLES: Mapping[str, str] = MappingProxyType(
    {
        "autoscaling.amazonaws.com": "AWSServiceRoleForAutoScaling",
        "spot.amazonaws.com": "AWSServiceRoleForEC2Spot",
        "s3.data-source.lustre.fsx.amazonaws.com": "AWSServiceRoleForFSxS3Access_fs-*",
    }
)
"""Names of service-linked roles, by their service; FSx makes one for each linked file system."""
