"""AWS Regions, their zones, and where instance types are sold.

Sources:
    https://github.com/boto/botocore/blob/1.44.5/botocore/data/partitions.json (names, partitions)
    https://docs.aws.amazon.com/global-infrastructure/latest/regions/aws-availability-zones.html
    https://docs.aws.amazon.com/local-zones/latest/ug/available-local-zones.html (their form)
    https://docs.aws.amazon.com/memorydb/latest/devguide/subnetgroups.html (zone ids of GovCloud
    and China)
    https://github.com/aws-cloudformation/cfn-lint/tree/v1.58.0/src/cfnlint/data/schemas/providers
    (CloudFormation's resource schemas of 2026-10-20: where AWS::EC2::SubnetCidrReservation exists)
    `offers.csv`: AWS price list as of 2026-07-20, in China as of 2024-11-06, and the instance
    types of HyperPod per Region in cfn-lint 1.58.0
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from ultrascale.catalog._near import did_you_mean
from ultrascale.catalog._sources import read_table
from ultrascale.catalog.instance_types import INSTANCE_TYPES
from ultrascale.errors import CatalogError

Partition = Literal["aws", "aws-us-gov", "aws-cn"]

_PARTITIONS: Mapping[str, Partition] = {
    "aws": "aws",
    "aws-us-gov": "aws-us-gov",
    "aws-cn": "aws-cn",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """An AWS Region.

    Attributes:
        name: Its name, such as ``us-west-2``.
        partition: The partition that ARNs in it begin with.
        zone_id_prefix: What its zone ids begin with, such as ``usw2``; None where no source
            states it, so that only zone names are accepted there.
        subnet_cidr_reservations: Whether CloudFormation makes subnet CIDR reservations there;
            false where no source states it. It stays as it is for clusters that are deployed: the
            reservations of a function and those of CloudFormation would overlap.
    """

    name: str
    partition: Partition
    zone_id_prefix: str | None
    subnet_cidr_reservations: bool


REGIONS: Mapping[str, Region] = MappingProxyType(
    {
        row["name"]: Region(
            name=row["name"],
            partition=_PARTITIONS[row["partition"]],
            zone_id_prefix=row["zone_id_prefix"] or None,
            subnet_cidr_reservations=row["subnet_cidr_reservations"] == "yes",
        )
        for row in read_table("regions.csv")
    }
)

ALWAYS_ENABLED = frozenset(
    {
        *("ap-northeast-1", "ap-northeast-2", "ap-northeast-3", "ap-south-1"),
        *("ap-southeast-1", "ap-southeast-2", "ca-central-1", "eu-central-1", "eu-north-1"),
        *("eu-west-1", "eu-west-2", "eu-west-3", "sa-east-1"),
        *("us-east-1", "us-east-2", "us-west-1", "us-west-2"),
    }
)
"""Regions that every account of the partition `aws` has; it has to enable the others.

Source: https://docs.aws.amazon.com/accounts/latest/reference/manage-acct-regions.html
"""


def lookup_region(name: str) -> Region:
    """Return the Region called ``name``.

    Raises:
        CatalogError: There is none; the message names the nearest one.
    """
    try:
        return REGIONS[name]
    except KeyError:
        hint = did_you_mean(name, REGIONS) or "write its name as in us-west-2"
        raise CatalogError(f"unknown Region {name!r}; {hint}") from None


def zone_in_region(zone: str, region: str) -> bool:
    """Return whether ``zone`` has the form of a zone of ``region``.

    Availability Zones and Local Zones are told by name (``us-west-2b``, ``us-east-1-dfw-2a``) or by
    zone id (``usw2-az4``, ``use1-dfw2-az1``). Whether a zone of that form exists is not checked.

    Args:
        zone: Zone name or zone id.
        region: Name of the Region.

    Raises:
        CatalogError: There is no such Region.
    """
    known = lookup_region(region)
    if re.fullmatch(rf"{known.name}(-[a-z]{{3}}-\d)?[a-z]", zone):
        return True
    if known.zone_id_prefix is None:
        return False
    return re.fullmatch(rf"{known.zone_id_prefix}(-[a-z]{{3}}\d)?-az\d", zone) is not None


def is_zone_id(zone: str) -> bool:
    """Return whether ``zone`` is written as a zone id, which is the same in every account."""
    return re.fullmatch(r"[a-z]+\d(-[a-z]{3}\d)?-az\d", zone) is not None


def offered(instance_type: str, region: str, *, hyperpod: bool = False) -> bool | None:
    """Return whether a type is sold in a Region, or None where no source says.

    The list ages, and knows On-Demand prices only: a type may be sold as Capacity Blocks in more
    Regions. Good for a warning, never for a refusal.

    Args:
        instance_type: EC2 name of the type, without ``ml.``.
        region: Name of the Region.
        hyperpod: Ask for SageMaker HyperPod instead of EC2.
    """
    column = _column(hyperpod=hyperpod)
    regions = _listed(instance_type, column)
    # A Region that the list never names was not asked when the list was made.
    if not regions or not any(region in (_listed(name, column) or ()) for name in INSTANCE_TYPES):
        return None
    # The prices of China are older than most types.
    if region not in regions and REGIONS[region].partition == "aws-cn":
        return None
    return region in regions


def listed_nowhere(instance_type: str, *, hyperpod: bool = False) -> bool:
    """Return whether the list knows a type and names no Region for it.

    It may be sold as Capacity Blocks alone, or not yet.

    Args:
        instance_type: EC2 name of the type, without ``ml.``.
        hyperpod: Ask for SageMaker HyperPod instead of EC2.
    """
    return _listed(instance_type, _column(hyperpod=hyperpod)) == frozenset()


def _column(*, hyperpod: bool) -> Literal["ec2_regions", "hyperpod_regions"]:
    return "hyperpod_regions" if hyperpod else "ec2_regions"


def _listed(
    instance_type: str, column: Literal["ec2_regions", "hyperpod_regions"]
) -> frozenset[str] | None:
    spec = INSTANCE_TYPES.get(instance_type)
    if spec is None or not spec.knows(column):
        return None
    return spec.ec2_regions if column == "ec2_regions" else spec.hyperpod_regions
