"""What resources cost that stand unused, in US dollars: what a teardown may leave.

Prices of us-east-1, as they are commonly given; other Regions charge more or less. Those of NAT
gateways, public IPv4 addresses, interface endpoints and Lustre's 125 MB/s per TiB agree with pages
of others; the rest was compared with nothing. Whoever shows one says so, and AWS's pages decide.

Sources:
    https://aws.amazon.com/vpc/pricing/
    https://aws.amazon.com/elasticloadbalancing/pricing/
    https://aws.amazon.com/ebs/pricing/
    https://aws.amazon.com/fsx/lustre/pricing/
    https://aws.amazon.com/kms/pricing/
    https://aws.amazon.com/s3/pricing/
    https://aws.amazon.com/ecr/pricing/
    https://aws.amazon.com/cloudwatch/pricing/
"""

from collections.abc import Mapping
from types import MappingProxyType

REGION = "us-east-1"

# By CloudFormation's name of a type.
USD_PER_HOUR: Mapping[str, float] = MappingProxyType(
    {
        "AWS::EC2::EIP": 0.005,
        "AWS::EC2::NatGateway": 0.045,
        "AWS::ElasticLoadBalancingV2::LoadBalancer": 0.0225,
    }
)
INTERFACE_ENDPOINT_USD_PER_HOUR_AND_ZONE = 0.01
USD_PER_MONTH: Mapping[str, float] = MappingProxyType({"AWS::KMS::Key": 1.0})
USD_PER_GB_MONTH: Mapping[str, float] = MappingProxyType(
    {
        "AWS::EC2::Volume": 0.08,
        "AWS::EC2::Snapshot": 0.05,
        "AWS::S3::Bucket": 0.023,
        "AWS::ECR::Repository": 0.10,
        "AWS::Logs::LogGroup": 0.03,
    }
)
# FSx for Lustre on SSD, PERSISTENT_2, by throughput in MB/s for each TiB.
LUSTRE_USD_PER_GB_MONTH: Mapping[int, float] = MappingProxyType(
    {125: 0.145, 250: 0.210, 500: 0.340, 1000: 0.600}
)
