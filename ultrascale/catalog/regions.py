"""AWS Regions, their zones, and where instance types are sold.

Sources:
    https://github.com/boto/botocore/blob/1.44.5/botocore/data/partitions.json (names, partitions)
    https://docs.aws.amazon.com/global-infrastructure/latest/regions/aws-availability-zones.html
    https://github.com/aws-cloudformation/cfn-lint/blob/v1.58.0/src/cfnlint/helpers.py
    (`AVAILABILITY_ZONES`: letters of the zones; a test holds the table against it)
    https://docs.aws.amazon.com/memorydb/latest/devguide/subnetgroups.html (zone ids of GovCloud
    and China)
    https://github.com/aws-cloudformation/cfn-lint/tree/v1.58.0/src/cfnlint/data/schemas/providers
    (CloudFormation's resource schemas of 2026-10-20: where AWS::EC2::SubnetCidrReservation exists)
    `offers.csv`: AWS price list as of 2026-07-20, in China as of 2024-11-06, and the instance
    types of HyperPod per Region in cfn-lint 1.58.0
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from ultrascale.catalog._near import did_you_mean
from ultrascale.catalog.instance_types import INSTANCE_TYPES
from ultrascale.catalog.tables import read_table
from ultrascale.errors import CatalogError
from ultrascale.frozen import Frozen

Partition = Literal["aws", "aws-us-gov", "aws-cn"]

_PARTITIONS: Mapping[str, Partition] = {
    "aws": "aws",
    "aws-us-gov": "aws-us-gov",
    "aws-cn": "aws-cn",
}


class Region(Frozen):
    """An AWS Region."""

    name: str  # Its name, such as ``us-west-2``
    partition: Partition  # Partition in its ARNs
    # Prefix of its zone ids, such as ``usw2``; None where no source states it: then only zone
    # names are accepted.
    zone_id_prefix: str | None
    # Letters of its zones' names, as many as it has zone ids; empty where no source states them.
    # Until November 2025 each account got its own letters: `us-west-1` has three, of which an
    # account sees two.
    zone_letters: str
    # Whether CloudFormation can create subnet CIDR reservations there; false without a source.
    # Never change it: in deployed clusters, a function's reservations and CloudFormation's would
    # overlap.
    subnet_cidr_reservations: bool


REGIONS: Mapping[str, Region] = MappingProxyType(
    {
        row["name"]: Region(
            name=row["name"],
            partition=_PARTITIONS[row["partition"]],
            zone_id_prefix=row["zone_id_prefix"] or None,
            zone_letters=row["zone_letters"],
            subnet_cidr_reservations=row["subnet_cidr_reservations"] == "yes",
        )
        for row in read_table("regions.csv")
    }
)

ZONES_WITHOUT_CONTROL_PLANE = frozenset({"use1-az3", "usw1-az2", "cac1-az3"})
"""Ids of the zones whose subnets EKS refuses for a control plane.

Source: https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html
"""

_LETTER = re.compile("[a-z]")
_ZONE_ID = re.compile("([a-z]+[0-9])-az([0-9])")
# Rest of a Local or Wavelength Zone's name after the Region's, and of its id after the prefix.
# Source: https://docs.aws.amazon.com/local-zones/latest/ug/available-local-zones.html
# Source: https://docs.aws.amazon.com/wavelength/latest/developerguide/available-wavelength-zones.html
_LOCAL_ZONE = re.compile("-[a-z]{3}-[0-9][a-z]|-wl[0-9]-[a-z]{3}-wlz-[0-9]")
_LOCAL_ZONE_ID = re.compile("-[a-z]{3}[0-9]-az[0-9]|-wl[0-9]-[a-z]{3}-?wlz-?[0-9]")
_ANY_LOCAL_ID = rf"[a-z]+[0-9](?:{_LOCAL_ZONE_ID.pattern})"

ALWAYS_ENABLED = frozenset(
    {
        *("ap-northeast-1", "ap-northeast-2", "ap-northeast-3", "ap-south-1"),
        *("ap-southeast-1", "ap-southeast-2", "ca-central-1", "eu-central-1", "eu-north-1"),
        *("eu-west-1", "eu-west-2", "eu-west-3", "sa-east-1"),
        *("us-east-1", "us-east-2", "us-west-1", "us-west-2"),
    }
)
"""Regions that are enabled in every account of the partition `aws`; others must be enabled first.

Source: https://docs.aws.amazon.com/accounts/latest/reference/manage-acct-regions.html
"""


def lookup_region(name: str) -> Region:
    """Return the Region called ``name``.

    Raises:
        CatalogError: There is no such Region; the message names the nearest one.
    """
    try:
        return REGIONS[name]
    except KeyError:
        hint = did_you_mean(name, REGIONS) or "write its name as in us-west-2"
        raise CatalogError(f"unknown Region {name!r}; {hint}") from None


def why_no_zone(zone: str, region: str) -> tuple[str, str] | None:
    """Return why subnets of an EKS cluster in ``region`` cannot be in ``zone``, with the remedy.

    None for a zone that is allowed. Which zone a name (``us-west-2b``) stands for differs by
    account, so an allowed name may stand for a zone without control planes.

    Args:
        zone: Zone name or zone id.
        region: Name of the Region.

    Raises:
        CatalogError: There is no such Region.
    """
    is_local, there = _is_local_zone(zone, lookup_region(region)), zones_like(zone, region)
    if not zone_in_region(zone, region):
        if there and zone.startswith(there[0][:-1]):
            return f"no zone of {region}", f"it has {', '.join(there)}"
        return f"not a zone of {region}", f"write its name, such as {region}a, or its zone id"
    if is_local or zone in ZONES_WITHOUT_CONTROL_PLANE:
        kind = "Local or Wavelength Zone" if is_local else "zone"
        wrong = f"a {kind} in which EKS puts no control plane"
        return wrong, f"use {'one of ' if there else ''}{', '.join(there) or 'Availability Zones'}"
    return None


def zone_in_region(zone: str, region: str) -> bool:
    """Return whether ``zone`` may be a zone, or a Local Zone, of ``region``.

    A zone is given by name (``us-west-2b``, ``us-east-1-dfw-2a``) or by zone id (``usw2-az4``,
    ``use1-dfw2-az1``). Local Zones, and zones of a Region
    whose zones no source lists, are checked only by form.

    Args:
        zone: Zone name or zone id.
        region: Name of the Region.

    Raises:
        CatalogError: There is no such Region.
    """
    known = lookup_region(region)
    if _is_local_zone(zone, known):
        return True
    letter, by_id = _LETTER.fullmatch(zone.removeprefix(region)), _ZONE_ID.fullmatch(zone)
    if zone.startswith(region) and letter is not None:
        return not known.zone_letters or letter[0] in known.zone_letters
    if by_id is None or by_id[1] != known.zone_id_prefix:
        return False
    return not known.zone_letters or 1 <= int(by_id[2]) <= len(known.zone_letters)


def zones_like(zone: str, region: str) -> tuple[str, ...]:
    """Return the zones of ``region`` that allow control planes, as ids if ``zone`` is an id.

    Names cover the zones of every account; empty where no source lists the Region's zones.

    Args:
        zone: Zone name or zone id.
        region: Name of the Region.

    Raises:
        CatalogError: There is no such Region.
    """
    known = lookup_region(region)
    if not is_zone_id(zone):
        return tuple(f"{region}{letter}" for letter in known.zone_letters)
    ids = (f"{known.zone_id_prefix}-az{number + 1}" for number in range(len(known.zone_letters)))
    return tuple(each for each in ids if each not in ZONES_WITHOUT_CONTROL_PLANE)


def _is_local_zone(zone: str, region: Region) -> bool:
    by_name = zone.startswith(region.name) and _LOCAL_ZONE.fullmatch(zone[len(region.name) :])
    prefix = region.zone_id_prefix
    by_id = prefix and zone.startswith(prefix) and _LOCAL_ZONE_ID.fullmatch(zone[len(prefix) :])
    return bool(by_name or by_id)


def is_zone_id(zone: str) -> bool:
    """Return whether ``zone`` has the form of a zone id, which is the same in every account."""
    return _ZONE_ID.fullmatch(zone) is not None or re.fullmatch(_ANY_LOCAL_ID, zone) is not None


Seller = Literal["ec2", "sagemaker"]
"""A service that sells instances."""

_COLUMNS: Mapping[Seller, str] = {"ec2": "ec2_regions", "sagemaker": "hyperpod_regions"}


def offered(instance_type: str, region: str, *, by: Seller = "ec2") -> bool | None:
    """Return whether a type is sold in a Region; None if no source says.

    The list ages, and knows only On-Demand prices: a type may be sold as Capacity Blocks in more
    Regions. Use it for a warning, never for a refusal.

    Args:
        instance_type: EC2 name of the type, without ``ml.``.
        region: Name of the Region.
        by: The service that sells it; ``sagemaker`` for HyperPod.
    """
    regions = _regions_of(instance_type, by)
    # The list does not cover a Region that it never names.
    if not regions or not any(region in (_regions_of(name, by) or ()) for name in INSTANCE_TYPES):
        return None
    # The price list of China is older than most types.
    if region not in regions and REGIONS[region].partition == "aws-cn":
        return None
    return region in regions


def listed_nowhere(instance_type: str, *, by: Seller = "ec2") -> bool:
    """Return whether the list names a type, but no Region that sells it.

    It may be sold only as Capacity Blocks, or not yet.

    Args:
        instance_type: EC2 name of the type, without ``ml.``.
        by: The service that sells it; ``sagemaker`` for HyperPod.
    """
    return _regions_of(instance_type, by) == frozenset()


def _regions_of(instance_type: str, by: Seller) -> frozenset[str] | None:
    spec = INSTANCE_TYPES.get(instance_type)
    if spec is None or not spec.knows(_COLUMNS[by]):
        return None
    return spec.ec2_regions if by == "ec2" else spec.hyperpod_regions
