import json
from importlib.resources import files
from typing import cast

import botocore.session
import pytest
from cfnlint.helpers import AVAILABILITY_ZONES

from tests.support.cases import for_each
from ultrascale.catalog import eks, regions
from ultrascale.errors import CatalogError
from ultrascale.parts.volcano import facts as volcano


def eks_enum(shape: str) -> set[str]:
    """Return the values that the AWS SDK allows for a string of EKS's API."""
    model = botocore.session.get_session().get_service_model("eks")
    return set(cast("dict[str, list[str]]", model.shape_for(shape).metadata)["enum"])


def test_regions_are_those_of_the_sdk() -> None:
    session = botocore.session.get_session()
    for partition in ("aws", "aws-us-gov", "aws-cn"):
        sdk = session.get_available_regions("eks", partition_name=partition)
        ours = {r.name for r in regions.REGIONS.values() if r.partition == partition}

        assert set(sdk) <= ours


def test_zone_id_prefixes_are_unique() -> None:
    prefixes = [r.zone_id_prefix for r in regions.REGIONS.values() if r.zone_id_prefix]

    assert len(prefixes) == len(set(prefixes)) == 38


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("us-wset-2", "did you mean us-west-2?"),
        ("us-west2", "did you mean us-west-2?"),
        ("?", "write its name as in us-west-2"),
    ],
)
def test_misspelt_region_is_answered_with_its_neighbour(asked: str, hint: str) -> None:
    with pytest.raises(CatalogError) as raised:
        regions.lookup_region(asked)

    assert str(raised.value) == f"unknown Region {asked!r}; {hint}"


@for_each(
    [
        ("us-west-2b", "us-west-2"),
        ("usw2-az4", "us-west-2"),
        ("us-east-1-dfw-2a", "us-east-1"),
        ("use1-dfw2-az1", "us-east-1"),
        ("usge1-az1", "us-gov-east-1"),
        ("cn-north-1a", "cn-north-1"),
        ("sa-west-1a", "sa-west-1"),  # no source states its zone ids
    ]
)
def test_zone_is_accepted_in_its_region(zone: str, region: str) -> None:
    assert regions.zone_in_region(zone, region)
    assert regions.is_zone_id(zone) is ("-az" in zone)


@for_each(
    [
        *((zone, "us-west-2") for zone in ("us-west-2", "us-west-2B", "us-west-2bb", "usw2-az")),
        # A digit of another script is one of the zones of no Region.
        *((zone, "us-west-2") for zone in ("usw2-az4 ", "us-west-2b\n", "usw2-az0", "")),
        ("usw2-az\u0664", "us-west-2"),
        ("us-west-2b", "us-east-1"),
        ("usw2-az4", "us-west-1"),
        ("us-east-1-dfw-2a", "us-east-2"),
        ("us-east-1x", "us-east-1"),
        ("us-east-2d", "us-east-2"),
        ("use1-az7", "us-east-1"),
        ("saw1-az1", "sa-west-1"),
    ]
)
def test_zone_of_another_region_is_refused(zone: str, region: str) -> None:
    assert not regions.zone_in_region(zone, region)


@for_each(
    [
        ("p5.48xlarge", "us-west-2", True),
        ("p5.48xlarge", "eu-central-1", False),
        ("trn2.48xlarge", "us-east-2", True),
        ("trn3.48xlarge", "us-west-2", None),  # nothing is known of it
        ("m7i.4xlarge", "us-west-2", None),  # not in the list
        ("p5.48xlarge", "cn-north-1", None),  # the prices of China are too old
        ("p5.48xlarge", "me-west-1", None),  # the list does not know the Region
        ("trn1.32xlarge", "eu-central-1", False),
    ]
)
def test_offer_is_known_or_said_to_be_unknown(
    instance_type: str, region: str, is_offered: bool | None
) -> None:
    assert regions.offered(instance_type, region) is is_offered
    if instance_type == "trn1.32xlarge":
        assert regions.offered(instance_type, region, by="sagemaker") is True


def test_default_version_is_one_that_volcano_and_hyperpod_support() -> None:
    assert eks.DEFAULT_VERSION in eks.SUPPORTED_VERSIONS
    for latest in (volcano.LATEST_KUBERNETES_VERSION, eks.LATEST_HYPERPOD_VERSION):
        versions = eks.SUPPORTED_VERSIONS
        assert versions.index(eks.DEFAULT_VERSION) <= versions.index(latest)


def test_control_plane_tiers_and_logs_are_those_of_the_sdk() -> None:
    assert set(eks.CONTROL_PLANE_LOG_TYPES) == eks_enum("LogType")
    assert set(eks.CONTROL_PLANE_TIERS.values()) == eks_enum("ProvisionedControlPlaneTier")


def test_default_service_range_is_one_that_eks_accepts() -> None:
    length = eks.DEFAULT_SERVICE_CIDR.prefixlen

    assert eks.SERVICE_CIDR_SHORTEST_PREFIX <= length <= eks.SERVICE_CIDR_LONGEST_PREFIX
    assert any(eks.DEFAULT_SERVICE_CIDR.subnet_of(allowed) for allowed in eks.SERVICE_CIDR_RANGES)


@for_each(
    {
        "no control plane": ("use1-az3", "us-east-1"),
        "no control plane in California": ("usw1-az2", "us-west-1"),
        "no control plane in Canada": ("cac1-az3", "ca-central-1"),
        "Local Zone": ("us-west-2-lax-1a", "us-west-2"),
        "Local Zone by id": ("usw2-lax1-az1", "us-west-2"),
        "Wavelength Zone": ("us-east-1-wl1-bos-wlz-1", "us-east-1"),
        "letter of no zone": ("us-east-1x", "us-east-1"),
        "number of no zone": ("use1-az7", "us-east-1"),
    }
)
def test_zone_without_room_for_a_control_plane_is_told_with_those_that_have_it(
    zone: str, region: str
) -> None:
    why = regions.why_no_zone(zone, region)

    assert why is not None
    for other in why[1].removeprefix("use one of ").removeprefix("it has ").split(", "):
        assert regions.why_no_zone(other, region) is None


@for_each(sorted(regions.REGIONS))
def test_letters_of_zones_are_those_of_the_linter(name: str) -> None:
    """An account sees two of the three zones of us-west-1, by any letters."""
    letters = regions.lookup_region(name).zone_letters
    theirs = "".join(zone[-1] for zone in AVAILABILITY_ZONES.get(name, ()))

    assert letters == ("abc" if name == "us-west-1" else theirs)


@for_each(sorted(regions.REGIONS))
def test_subnets_keep_prefixes_only_where_cloudformation_can(name: str) -> None:
    """A resource type that the Region lacks fails the deployment, and strict synthesis before."""
    file = files("cfnlint") / "data" / "schemas" / "providers" / f"{name}.json"
    types: dict[str, str] = json.loads(file.read_text()) if file.is_file() else {}

    assert regions.lookup_region(name).subnet_cidr_reservations is (
        "AWS::EC2::SubnetCidrReservation" in types
    )
