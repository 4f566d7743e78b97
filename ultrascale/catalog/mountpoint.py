"""Mountpoint for Amazon S3 on Kubernetes: names of its CSI driver, and what it may be allowed.

Sources:
    https://github.com/awslabs/mountpoint-s3-csi-driver/blob/main/charts/aws-mountpoint-s3-csi-driver/values.yaml
    https://github.com/awslabs/mountpoint-s3/blob/main/doc/CONFIGURATION.md#iam-permissions
"""

DRIVER = "s3.csi.aws.com"
# Of the pods that the driver starts beside a pod that mounts a bucket, on its node.
NAMESPACE = "mount-s3"
# Whose permissions all mounts have.
SERVICE_ACCOUNT = "s3-csi-driver-sa"

BUCKET_ACTIONS = ("s3:ListBucket",)
READ_ACTIONS = ("s3:GetObject",)
WRITE_ACTIONS = ("s3:PutObject", "s3:AbortMultipartUpload", "s3:DeleteObject")
READ_KEY_ACTIONS = ("kms:Decrypt",)
WRITE_KEY_ACTIONS = ("kms:GenerateDataKey",)
