"""Prices of a Region, asked of AWS's Price List API by the models of botocore."""

import json
from typing import Any

import pytest

from tests.support.account import fake_account
from tests.support.fake_aws import THROTTLED, Answer, Refusal, Told, denied
from tests.support.price_list import product
from ultrascale.errors import UnansweredError, UsageError
from ultrascale.pricing.products import ACTION, fetch_prices, prices_of_products, refuse_region

EMPTY: Answer = {"FormatVersion": "aws_v1", "PriceList": []}


def page(*products: dict[str, Any], then: str | None = None) -> Answer:
    more = {} if then is None else {"NextToken": then}
    return {"FormatVersion": "aws_v1", "PriceList": [json.dumps(each) for each in products], **more}


def by_service(**answers: Answer) -> Told:
    def answer(parameters: dict[str, Any]) -> Answer:
        return answers.get(parameters["ServiceCode"], EMPTY)

    return answer


def test_every_page_is_read_and_what_stands_beside_nodes_too() -> None:
    def answer(parameters: dict[str, Any]) -> Answer:
        code = parameters["ServiceCode"]
        fields = {each["Field"]: each["Value"] for each in parameters["Filters"]}
        if code == "AmazonEC2" and "operatingSystem" in fields:
            if "NextToken" not in parameters:
                return page(product("p5.48xlarge", "55.04"), then="two")
            return page(product("m7g.8xlarge", "1.3056"))
        if code == "AmazonEC2" and fields.get("productFamily") == "NAT Gateway":
            return page(product("NatGateway-Hours", "0.045"))
        if code == "AmazonEKS":
            return page(product("USE1-AmazonEKS-Hours:perCluster", "0.1", service="AmazonEKS"))
        return EMPTY

    account, aws = fake_account({ACTION: answer}, region="us-east-1")
    found = fetch_prices(account, "us-east-1")

    assert {(each.service, each.item): each.price for each in found} == {
        ("ec2", "p5.48xlarge"): 55.04,
        ("ec2", "m7g.8xlarge"): 1.3056,
        ("vpc", "nat-gateway"): 0.045,
        ("eks", "cluster"): 0.1,
    }
    regions = {region for _, _, region in aws.calls}
    assert regions == {"us-east-1"}


def test_hyperpod_is_asked_by_type() -> None:
    cluster = product("USE1-Cluster:ml.p5.48xlarge", "63.296", service="AmazonSageMaker")
    notebook = product("USE1-Notebk:ml.p5.48xlarge", "70", service="AmazonSageMaker")
    account, aws = fake_account({ACTION: by_service(AmazonSageMaker=page(notebook, cluster))})

    found = fetch_prices(account, "us-east-1", ["ml.p5.48xlarge"])

    assert [(each.item, each.price) for each in found] == [("ml.p5.48xlarge", 63.296)]
    (asked,) = (each for each in aws.parameters(ACTION) if each["ServiceCode"] == "AmazonSageMaker")
    assert {"Type": "TERM_MATCH", "Field": "instanceName", "Value": "ml.p5.48xlarge"} in asked[
        "Filters"
    ]


def test_one_price_of_an_item_is_fetched_whatever_comes_first() -> None:
    products = [product("p5.48xlarge", usd) for usd in ("55.04", "60", "0.0000000000")]

    for order in (products, products[::-1]):
        account, _ = fake_account({ACTION: by_service(AmazonEC2=page(*order))})
        (found,) = fetch_prices(account, "us-east-1")

        assert found.price == 60


def test_the_class_of_a_database_is_that_of_postgresql_in_one_zone() -> None:
    def of(usage: str, usd: str, **attributes: str) -> dict[str, Any]:
        own = {"instanceType": "db.m6g.large", "databaseEngine": "PostgreSQL"} | attributes
        return product(usage, usd, service="AmazonRDS", **own)

    products = [
        of("USE2-InstanceUsage:db.m6g.large", "0.159"),
        of("USE2-Multi-AZUsage:db.m6g.large", "0.318"),
        of("USE2-InstanceUsage:db.m6g.large", "0.26", databaseEngine="Aurora PostgreSQL"),
        product("USE2-RDS:GP3-Storage", "0.115", service="AmazonRDS"),
        product("USE2-RDS:Multi-AZ-GP3-Storage", "0.23", service="AmazonRDS"),
    ]
    account, _ = fake_account({ACTION: by_service(AmazonRDS=page(*products))})

    found = fetch_prices(account, "us-east-1")

    assert {price.item: price.price for price in found} == {
        "db.m6g.large": 0.159,
        "gp3-storage": 0.115,
    }


def test_what_no_policy_allows_is_named() -> None:
    account, _ = fake_account({ACTION: denied(ACTION)})

    with pytest.raises(UnansweredError) as refusal:
        fetch_prices(account, "us-east-1")

    assert refusal.value.denied
    assert refusal.value.action == ACTION


def test_a_throttled_request_gives_no_half_of_the_prices() -> None:
    account, aws = fake_account({ACTION: [page(product("p5.48xlarge", "55.04")), THROTTLED]})

    with pytest.raises(UnansweredError):
        fetch_prices(account, "us-east-1")

    assert aws.attempts[ACTION] > 1


def test_a_service_that_a_region_lacks_is_left_out() -> None:
    def answer(parameters: dict[str, Any]) -> Answer:
        if parameters["ServiceCode"] == "AmazonFSx":
            raise Refusal("NotFoundException")
        return page(product("p5.48xlarge", "55.04"))

    account, _ = fake_account({ACTION: answer})

    assert [each.item for each in fetch_prices(account, "us-east-1")] == ["p5.48xlarge"]


@pytest.mark.parametrize(
    ("region", "profile", "words"),
    [
        ("cn-north-1", None, "prices of China are in CNY"),
        ("us-gov-west-1", None, "GovCloud has no endpoint of the Price List API"),
    ],
)
def test_a_region_without_prices_of_use_is_refused_before_aws_is_asked(
    region: str, profile: str | None, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        refuse_region(region, profile)


def test_a_commercial_account_may_be_asked_for_govcloud() -> None:
    refuse_region("us-gov-west-1", "commercial")


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (
            product("USE2-EBS:VolumeP-Throughput.gp3", "40.96", unit="GiBps-mo"),
            ("ebs", "gp3-throughput", 0.04),
        ),
        (product("EBS:VolumeUsage.gp3", "0.08", unit="GB-Mo"), ("ebs", "gp3", 0.08)),
        (
            product("USE1-VpcEndpoint-Hours", "0.01", service="AmazonVPC"),
            ("vpc", "interface-endpoint", 0.01),
        ),
        (
            product("USE1-EKS-Auto:m8g.2xlarge", "0.04", service="AmazonEKS"),
            ("eks", "auto-mode/m8g.2xlarge", 0.04),
        ),
        (
            product("USE1-ProvisionedControlPlane-2XL", "3.4", service="AmazonEKS"),
            ("eks", "tier-2xl", 3.4),
        ),
        (
            product(
                "USE1-Storage-PERSISTENT_2",
                "0.145",
                service="AmazonFSx",
                fileSystemType="Lustre",
                storageType="SSD",
                throughputCapacity="125 MB/s/TiB",
            ),
            ("fsx", "lustre-persistent-2-125", 0.145),
        ),
        (
            product(
                "USE1-Storage-SCRATCH_2",
                "0.14",
                service="AmazonFSx",
                fileSystemType="Lustre",
                storageType="SSD",
                throughputCapacity="200 MB/s/TiB",
            ),
            None,
        ),
        (product("p5.48xlarge", "60", preInstalledSw="SQL Std"), None),
        (product("p5.48xlarge", "60", marketoption="CapacityBlock"), None),
        (product("p5.48xlarge", "oops"), None),
    ],
    ids=lambda value: "",
)
def test_products_are_read_by_usage_and_others_are_left_out(
    one: dict[str, Any], expected: tuple[str, str, float] | None
) -> None:
    found = [
        (each.service, each.item, pytest.approx(each.price)) for each in prices_of_products([one])
    ]

    assert found == ([] if expected is None else [expected])
