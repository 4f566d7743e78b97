"""Service quotas that the size of a cluster runs into, as they stand before AWS raises them.

An account may have been granted more: what holds there, only Service Quotas says.

Sources:
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-resource-limits.html
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-spot-limits.html
    https://docs.aws.amazon.com/eks/latest/userguide/service-quotas.html
    https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html
    https://docs.aws.amazon.com/fsx/latest/LustreGuide/limits.html
    https://docs.aws.amazon.com/AmazonECR/latest/userguide/service-quotas.html
    https://docs.aws.amazon.com/general/latest/gr/eks.html
    https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-limits.html
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ultrascale.catalog import matrix, vpc
from ultrascale.catalog.instance_types import INSTANCE_TYPES

_EC2 = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-resource-limits.html"
_SPOT = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-spot-limits.html"
_BLOCKS = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-capacity-blocks.html"
_EKS = "https://docs.aws.amazon.com/eks/latest/userguide/service-quotas.html"
_EBS = "https://docs.aws.amazon.com/ebs/latest/userguide/ebs-resource-quotas.html"
_EIP = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/elastic-ip-addresses-eip.html"
_EKS_FIXED = "https://docs.aws.amazon.com/general/latest/gr/eks.html"
_POD_IDENTITY = "https://docs.aws.amazon.com/eks/latest/userguide/pod-identities.html"
# The codes are in listings of the Service Quotas API alone, of which there are public copies.
_FSX = "https://docs.aws.amazon.com/fsx/latest/LustreGuide/limits.html"
_ECR = "https://docs.aws.amazon.com/AmazonECR/latest/userguide/service-quotas.html"
_HYPERPOD = "https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-prerequisites.html"
_ELB = (
    "https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-limits.html"
)
_VPC = "https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """A service quota.

    Attributes:
        code: Its code in Service Quotas; empty where it is no quota of Service Quotas.
        service: Code of the service there.
        name: Its name there.
        unit: What it counts.
        default: How many, before AWS raises it; None where no page states it.
        most: How many at most AWS publishes that it grants: the default itself where it cannot be
            raised; None where it publishes none.
        source: Page that states it.
    """

    code: str
    service: str
    name: str
    unit: str
    default: int | None
    most: int | None = None
    source: str


_VCPUS: tuple[tuple[str, str, int, str], ...] = (
    ("L-1216C47A", "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", 5, _EC2),
    ("L-417A185B", "Running On-Demand P instances", 0, _EC2),
    ("L-DB2E81BA", "Running On-Demand G and VT instances", 0, _EC2),
    ("L-1945791B", "Running On-Demand Inf instances", 0, _EC2),
    ("L-2C3B7624", "Running On-Demand Trn instances", 0, _EC2),
    ("L-34B43A08", "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests", 5, _SPOT),
    ("L-7212CCBC", "All P Spot Instance Requests", 0, _SPOT),
    ("L-3819A6DF", "All G and VT Spot Instance Requests", 0, _SPOT),
    ("L-B5D1601B", "All Inf Spot Instance Requests", 0, _SPOT),
    ("L-6B0D517C", "All Trn Spot Instance Requests", 0, _SPOT),
)
BLOCKS = "blocks"
"""Unit that quotas of Capacity Blocks are taken to count."""

BLOCKS_DOUBT = (
    "AWS does not say whether it counts blocks or vCPUs, and users read it both ways: ask AWS "
    "Support where the block cannot be bought"
)
NETWORK_INTERFACES = Quota(
    code="L-DF5E4CA3",
    service="vpc",
    name="Network interfaces per Region",
    unit="network interfaces",
    default=5_000,
    source=_VPC,
)
NETWORK_ADDRESS_USAGE = Quota(
    code="L-BB24F6E5",
    service="vpc",
    name="Network Address Usage",
    unit="units of one VPC",
    default=64_000,
    most=256_000,
    source=_VPC,
)
INTERFACE_ENDPOINTS = Quota(
    code="L-29B6F2EB",
    service="vpc",
    name="Interface VPC endpoints per VPC",
    unit="endpoints",
    default=50,
    source="https://docs.aws.amazon.com/vpc/latest/privatelink/vpc-limits-endpoints.html",
)
IPV4_RANGES = Quota(
    code="L-83CA0A9D",
    service="vpc",
    name="IPv4 CIDR blocks per VPC",
    unit="ranges",
    default=5,
    most=vpc.MOST_IPV4_RANGES,
    source=_VPC,
)
GP3_STORAGE = Quota(
    code="L-7A658B76",
    service="ebs",
    name="Storage for General Purpose SSD (gp3) volumes, in TiB",
    unit="TiB",
    default=50,
    source=_EBS,
)
NODE_GROUPS = Quota(
    code="L-6D54EA21",
    service="eks",
    name="Managed node groups per cluster",
    unit="node groups",
    default=matrix.MANAGED_NODE_GROUPS,
    source=_EKS,
)
NODES_OF_A_GROUP = Quota(
    code="L-BD136A63",
    service="eks",
    name="Nodes per managed node group",
    unit="nodes of the largest",
    default=matrix.NODES_PER_MANAGED_NODE_GROUP,
    source=_EKS,
)
CLUSTERS = Quota(
    code="L-1194D53C",
    service="eks",
    name="Clusters",
    unit="clusters of the Region",
    default=100,
    source=_EKS,
)
ACCESS_ENTRIES = Quota(
    code="L-C56B9FC3",
    service="eks",
    name="Access entries per cluster",
    unit="access entries",
    default=3_000,
    most=3_000,
    source=_EKS_FIXED,
)
POD_IDENTITIES = Quota(
    code="",
    service="eks",
    name="EKS Pod Identity associations per cluster",
    unit="associations",
    default=5_000,
    most=5_000,
    source=_POD_IDENTITY,
)
VPCS = Quota(
    code="L-F678F1CE",
    service="vpc",
    name="VPCs per Region",
    unit="VPCs",
    default=5,
    source=_VPC,
)
ELASTIC_ADDRESSES = Quota(
    code="L-0263D0A3",
    service="ec2",
    name="EC2-VPC Elastic IPs",
    unit="addresses of the Region",
    default=5,
    source=_EIP,
)
LUSTRE_STORAGE = Quota(
    code="L-8F1B9C74",
    service="fsx",
    name="Lustre Persistent_2 storage capacity",
    unit="GiB of all file systems",
    default=100_800,
    source=_FSX,
)
LUSTRE_FILE_SYSTEMS = Quota(
    code="L-FD6F2F22",
    service="fsx",
    name="Lustre Persistent_2 file systems",
    unit="file systems",
    default=100,
    source=_FSX,
)
# The codes are in the links of AWS's page to Service Quotas.
LOAD_BALANCERS = Quota(
    code="L-53DA6B97",
    service="elasticloadbalancing",
    name="Application Load Balancers per Region",
    unit="load balancers",
    default=50,
    source=_ELB,
)
TARGET_GROUPS = Quota(
    code="L-B22855CB",
    service="elasticloadbalancing",
    name="Target Groups per Region",
    unit="target groups",
    default=3_000,
    source=_ELB,
)
SECURITY_GROUP_RULES = Quota(
    code="L-0EA8095F",
    service="vpc",
    name="Inbound or outbound rules per security group",
    unit="rules of the largest",
    default=60,
    source=_VPC,
)
IMAGE_MANIFESTS = Quota(
    code="L-16E70933",
    service="ecr",
    name="Rate of BatchGetImage requests",
    unit="requests per second",
    default=2_000,
    source=_ECR,
)
IMAGE_LAYERS = Quota(
    code="L-A60A366D",
    service="ecr",
    name="Rate of GetDownloadUrlForLayer requests",
    unit="requests per second",
    default=3_000,
    source=_ECR,
)
IMAGE_TOKENS = Quota(
    code="L-55A41110",
    service="ecr",
    name="Rate of GetAuthorizationToken requests",
    unit="requests per second",
    default=500,
    source=_ECR,
)
# What they are in a new account, AWS's page does not say.
HYPERPOD_INSTANCES = Quota(
    code="L-2CE978FC",
    service="sagemaker",
    name="Maximum number instances allowed per SageMaker HyperPod cluster",
    unit="instances",
    default=None,
    source=_HYPERPOD,
)
ALL_HYPERPOD_INSTANCES = Quota(
    code="L-3308CCC7",
    service="sagemaker",
    name="Total number of instances allowed across SageMaker HyperPod clusters",
    unit="instances",
    default=None,
    source=_HYPERPOD,
)

_QUOTAS: Mapping[str, Quota] = MappingProxyType(
    {
        quota.code: quota
        for quota in (
            *(
                Quota(code=code, service="ec2", name=name, unit="vCPUs", default=least, source=page)
                for code, name, least, page in _VCPUS
            ),
            *(NETWORK_INTERFACES, NETWORK_ADDRESS_USAGE, IPV4_RANGES, GP3_STORAGE),
            INTERFACE_ENDPOINTS,
            *(CLUSTERS, NODE_GROUPS, NODES_OF_A_GROUP, ACCESS_ENTRIES, POD_IDENTITIES),
            *(VPCS, ELASTIC_ADDRESSES, LUSTRE_STORAGE, LUSTRE_FILE_SYSTEMS),
            *(LOAD_BALANCERS, TARGET_GROUPS, SECURITY_GROUP_RULES),
            *(IMAGE_MANIFESTS, IMAGE_LAYERS, IMAGE_TOKENS),
            *(HYPERPOD_INSTANCES, ALL_HYPERPOD_INSTANCES),
        )
        if quota.code
    }
)


def service_quotas() -> Mapping[str, Quota]:
    """Return each quota of Service Quotas, by code."""
    return {**_QUOTAS, **_capacity_blocks()}


def service_quota(code: str) -> Quota:
    """Return the quota of Service Quotas with that code.

    Raises:
        KeyError: The catalog has none.
    """
    return _QUOTAS[code] if code in _QUOTAS else _capacity_blocks()[code]


def _capacity_blocks() -> Mapping[str, Quota]:
    """Return the quotas on Capacity Blocks, one for each code that an instance type has.

    Types of several families may share a quota; it is called by the shortest name of a family.
    """
    families: dict[str, str] = {}
    for spec in INSTANCE_TYPES.values():
        if spec.knows("capacity_block_quota_code"):
            code = spec.capacity_block_quota_code
            families[code] = min(families.get(code, spec.family), spec.family, key=len)
    return {
        code: Quota(
            code=code,
            service="ec2",
            name=f"Concurrent {_family_title(family)} Capacity Blocks per account",
            unit=BLOCKS,
            default=0,
            source=_BLOCKS,
        )
        for code, family in families.items()
    }


def _family_title(family: str) -> str:
    """Return a family in the spelling of Service Quotas: ``P5en``, ``P6e-GB200``."""
    series, _, chip = family.partition("-")
    return f"{series.capitalize()}-{chip.upper()}" if chip else series.capitalize()


# Of each network interface, address and prefix one, of what stands in a zone for others so many.
# Source: https://docs.aws.amazon.com/vpc/latest/userguide/network-address-usage.html
ADDRESS_USAGE_OF_GATEWAYS = 6

# Tokens of RunInstances: so many instances at once, then so many each second.
# Source: https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html
RUN_INSTANCES_AT_ONCE = 1_000
RUN_INSTANCES_PER_SECOND = 2
RUN_INSTANCES_SOURCE = "https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html"
