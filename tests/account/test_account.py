"""Asking an account: an answer, or why there is none; never a default."""

from typing import TYPE_CHECKING, Any

import pytest
from botocore.client import BaseClient
from botocore.exceptions import EndpointConnectionError, ReadTimeoutError
from botocore.parsers import ResponseParserError

from tests.support.account import fake_account
from tests.support.fake_aws import THROTTLED, Refusal, denied
from ultrascale.account import Account
from ultrascale.errors import UnansweredError

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import DescribeVpcsResultTypeDef, VpcTypeDef

VPCS = "ec2:DescribeVpcs"


def describe_vpcs(account: Account, region: str | None = None) -> "DescribeVpcsResultTypeDef":
    return account.ask(account.client("ec2", region).describe_vpcs)


def list_vpcs(account: Account) -> "list[VpcTypeDef]":
    return account.ask_all(account.client("ec2").describe_vpcs, lambda page: page["Vpcs"])


def test_a_list_in_pages_is_whole() -> None:
    first, second = {"VpcId": "vpc-1"}, {"VpcId": "vpc-2"}
    account, aws = fake_account(
        {VPCS: [{"Vpcs": [first], "NextToken": "more"}, {"Vpcs": [second]}]}
    )
    assert list_vpcs(account) == [first, second]
    assert aws.parameters(VPCS) == [{}, {"NextToken": "more"}]


def test_a_page_that_is_refused_leaves_no_half_list() -> None:
    account, _ = fake_account({VPCS: [{"Vpcs": [], "NextToken": "more"}, THROTTLED]})
    with pytest.raises(UnansweredError, match="throttled"):
        list_vpcs(account)


@pytest.mark.parametrize(
    ("answer", "reason", "is_denied"),
    [
        (denied(VPCS), "denied because no identity-based policy allows", True),
        (Refusal("UnauthorizedOperation", "You are not authorized"), "denied", True),
        (Refusal("ForbiddenException", "Check permissions"), "denied", True),
        (THROTTLED, "throttled", False),
        (Refusal("RequestLimitExceeded"), "throttled", False),
        (Refusal("ExpiredToken"), "have expired", False),
        (Refusal("InternalError", "sorry"), "InternalError: sorry", False),
        (ReadTimeoutError(endpoint_url="https://ec2"), "no answer in time", False),
        (EndpointConnectionError(endpoint_url="https://ec2"), "the proxy", False),
    ],
)
def test_a_request_without_an_answer_says_why(
    answer: Exception, reason: str, is_denied: bool
) -> None:
    account, _ = fake_account({VPCS: answer})
    with pytest.raises(UnansweredError) as failure:
        describe_vpcs(account)
    assert reason in failure.value.reason
    assert (failure.value.action, failure.value.denied) == (VPCS, is_denied)


@pytest.mark.parametrize(
    ("region", "words"),
    [
        ("ap-south-2", "enable this one: `aws account enable-region --region-name ap-south-2`"),
        ("us-gov-west-1", "in us-gov-west-1 only those of a GovCloud (US) account work"),
        ("cn-north-1", "only those of an Amazon Web Services China account work"),
        ("us-east-1", "AuthFailure: no"),
    ],
)
def test_a_region_that_takes_no_credentials_says_which_it_takes(region: str, words: str) -> None:
    """A Region that every account has cannot be enabled."""
    account, _ = fake_account({VPCS: Refusal("AuthFailure")})
    with pytest.raises(UnansweredError) as failure:
        describe_vpcs(account, region)
    assert failure.value.reason.endswith(words)


@pytest.mark.parametrize(
    "answer", [Refusal("403", "<html>"), ResponseParserError("<html>"), KeyError("Result")]
)
def test_the_page_of_a_proxy_is_no_answer_and_no_traceback(answer: Exception) -> None:
    account, _ = fake_account({VPCS: [answer, answer]})
    for ask in (lambda: describe_vpcs(account), lambda: list_vpcs(account)):
        with pytest.raises(
            UnansweredError, match="something else than AWS answered; check the network"
        ) as no:
            ask()
        assert no.value.code == ""


def test_a_key_that_an_answer_leaves_out_is_no_answer() -> None:
    account, _ = fake_account({VPCS: {"Vpcs": [{"VpcId": "vpc-1", "Tags": [{"Key": "a"}]}]}})
    (listed,) = list_vpcs(account)
    asked = describe_vpcs(account)["Vpcs"][0]
    for vpc in (listed, asked):
        assert vpc["VpcId"] == "vpc-1"
        assert vpc.get("CidrBlock") is None
        with pytest.raises(UnansweredError, match="DescribeVpcs: the answer lacks Value"):
            vpc["Tags"][0]["Value"]


def test_what_is_denied_is_named_and_not_what_was_asked() -> None:
    """A request may need the permission of another."""
    account, _ = fake_account({VPCS: denied("kms:Decrypt")})
    with pytest.raises(UnansweredError) as failure:
        describe_vpcs(account)
    assert failure.value.action == "kms:Decrypt"


def test_clients_are_made_once_for_each_region_and_never_repeat_a_purchase() -> None:
    account, _ = fake_account()
    client = account.client("eks")
    assert account.client("eks") is client
    assert account.client("eks", "us-east-1").meta.region_name == "us-east-1"
    assert attempts(client) == 3
    assert attempts(account.client("eks", once=True)) == 1


def attempts(client: BaseClient) -> int:
    """Return how often a client sends a request at most."""
    config: Any = client.meta.config
    return config.retries["total_max_attempts"]
