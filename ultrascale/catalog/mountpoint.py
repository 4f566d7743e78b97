"""Names of the CSI driver of Mountpoint for Amazon S3.

Source:
    https://github.com/awslabs/mountpoint-s3-csi-driver/blob/main/charts/aws-mountpoint-s3-csi-driver/values.yaml
"""

DRIVER = "s3.csi.aws.com"
# Namespace of the pods that the driver starts on the node of a pod that mounts a bucket.
NAMESPACE = "mount-s3"
# Service account whose permissions all mounts have.
SERVICE_ACCOUNT = "s3-csi-driver-sa"

DEFAULT_GBPS = 10
"""Default throughput target of a mount in Gbit/s, if Mountpoint knows no bandwidth of the instance.

Source: https://github.com/awslabs/mountpoint-s3/blob/main/doc/CONFIGURATION.md
"""

RATE_SOURCE = "https://github.com/awslabs/mountpoint-s3/blob/main/doc/CONFIGURATION.md"
