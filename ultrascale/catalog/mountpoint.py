"""Names of the CSI driver of Mountpoint for Amazon S3.

Source:
    https://github.com/awslabs/mountpoint-s3-csi-driver/blob/main/charts/aws-mountpoint-s3-csi-driver/values.yaml
"""

DRIVER = "s3.csi.aws.com"
# Of the pods that the driver starts beside a pod that mounts a bucket, on its node.
NAMESPACE = "mount-s3"
# Whose permissions all mounts have.
SERVICE_ACCOUNT = "s3-csi-driver-sa"

DEFAULT_GBPS = 10
"""Gbit/s that a mount aims at where it does not learn of the instance's own.

Source: https://github.com/awslabs/mountpoint-s3/blob/main/doc/CONFIGURATION.md
"""

RATE_SOURCE = "https://github.com/awslabs/mountpoint-s3/blob/main/doc/CONFIGURATION.md"
