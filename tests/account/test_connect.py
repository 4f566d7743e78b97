"""Credentials: errors that name the fault in words, without a traceback."""

import socket
from collections.abc import Generator
from pathlib import Path

import boto3
import pytest
from botocore.client import BaseClient
from botocore.config import Config
from botocore.exceptions import (
    ConnectTimeoutError,
    MissingDependencyException,
    PartialCredentialsError,
    UnauthorizedSSOTokenError,
)
from botocore.parsers import ResponseParserError
from botocore.stub import Stubber
from moto import mock_aws

from tests.support.account import make_context
from tests.support.fake_aws import ARN, ID, FakeAws, Refusal, Told
from ultrascale import account
from ultrascale.account import Account
from ultrascale.errors import AccountError, CatalogError, UnansweredError
from ultrascale.preflight.access import ROLES
from ultrascale.preflight.model import Context
from ultrascale.preflight.run import run_checks

REGION = "us-west-2"
CALLER = "sts:GetCallerIdentity"


@pytest.fixture
def nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """A machine without credentials."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    return monkeypatch


@pytest.fixture
def keys(nobody: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine with credentials that look right."""
    nobody.setenv("AWS_ACCESS_KEY_ID", "x")
    nobody.setenv("AWS_SECRET_ACCESS_KEY", "x")
    return nobody


@pytest.fixture
def silent() -> Generator[str]:
    """An endpoint that takes requests and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def answers(keys: pytest.MonkeyPatch, answer: Told) -> None:
    """Have AWS answer so when it is asked who asks."""

    def session(**_: object) -> FakeAws:
        return FakeAws({CALLER: answer})

    keys.setattr(boto3, "Session", session)


@pytest.mark.usefixtures("nobody")
def test_no_credentials_says_how_to_get_some() -> None:
    with pytest.raises(AccountError, match="no AWS credentials; log in"):
        account.connect(REGION)


@pytest.mark.usefixtures("nobody")
def test_a_profile_that_is_not_there_is_named() -> None:
    with pytest.raises(AccountError, match=r"mine.*aws configure list-profiles"):
        account.connect(REGION, "mine")


def test_a_region_that_is_none_is_not_asked() -> None:
    with pytest.raises(CatalogError, match="did you mean us-west-2"):
        account.connect("us-wst-2")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Refusal("ExpiredToken"), "the AWS credentials have expired; log in again"),
        (Refusal("ExpiredTokenException"), "the AWS credentials have expired"),
        (Refusal("InvalidClientTokenId"), "InvalidClientTokenId: no; log in again"),
        (Refusal("SignatureDoesNotMatch"), "does not accept the credentials"),
        (
            Refusal("SignatureDoesNotMatch", "Signature expired: 20261201T0000Z"),
            "the clock of this machine is wrong: Signature expired: 20261201T0000Z; set it",
        ),
        (Refusal("407", "<html>"), "HTTP 400: something else than AWS answered"),
        (ResponseParserError("<html>"), "something else than AWS answered; check the"),
        (Refusal("InternalFailure", "sorry"), "InternalFailure: sorry"),
        (UnauthorizedSSOTokenError(), "the AWS login has expired"),
        (PartialCredentialsError(provider="env", cred_var="x"), "half of the AWS credentials"),
        (ConnectTimeoutError(endpoint_url="https://sts"), "look at the network, the proxy"),
        (
            MissingDependencyException(msg="You will need to pip install it."),
            "`aws configure export-credentials --format env`",
        ),
    ],
)
def test_credentials_that_do_not_work_say_why(
    keys: pytest.MonkeyPatch, answer: Exception, words: str
) -> None:
    answers(keys, answer)
    with pytest.raises(AccountError) as failure:
        account.connect(REGION)
    assert words in str(failure.value)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("credential_process = /no/such", "No such file or directory: '/no/such'"),
        ("credential_process = echo hi", "Expecting value"),
        ("role_arn = arn:aws:iam::1:role/x\nweb_identity_token_file = /no/token", "'/no/token'"),
    ],
)
def test_a_profile_that_cannot_be_used_says_why(
    nobody: pytest.MonkeyPatch, tmp_path: Path, lines: str, words: str
) -> None:
    """Botocore passes on Python's errors from programs and files that a profile names."""
    (tmp_path / "config").write_text(f"[profile mine]\n{lines}\n")
    with pytest.raises(AccountError, match="the AWS configuration does not work") as failure:
        account.connect(REGION, "mine")
    assert words in str(failure.value)


def test_an_account_says_who_asks(keys: pytest.MonkeyPatch) -> None:
    answers(keys, {"Account": ID, "Arn": ARN, "UserId": "x"})
    found = account.connect(REGION, "mine")
    assert (found.id, found.arn, found.region, found.profile) == (ID, ARN, REGION, "mine")


def test_an_endpoint_that_never_answers_is_given_up(keys: pytest.MonkeyPatch, silent: str) -> None:
    keys.setenv("AWS_ENDPOINT_URL_STS", silent)
    keys.setattr("ultrascale.account.account._READ_TIMEOUT", 0.1)
    keys.setattr("ultrascale.account.account._ATTEMPTS", 1)
    with pytest.raises(AccountError, match="no answer in time"):
        account.connect(REGION)


class Stubs:
    """Factory of the single client that botocore's own Stubber answers for."""

    def __init__(self) -> None:
        self.eks = boto3.Session("x", "x", region_name=REGION).client("eks")
        self.stub = Stubber(self.eks)

    def client(self, service_name: str, *, region_name: str, config: Config) -> BaseClient:
        assert (service_name, region_name) == ("eks", REGION)
        return self.eks


def test_answers_are_those_that_botocore_takes_for_real() -> None:
    stubs = Stubs()
    seen = Account(id=ID, arn=ARN, region=REGION, session=stubs)
    stubs.stub.add_response("list_clusters", {"clusters": ["a"], "nextToken": "more"})
    stubs.stub.add_response("list_clusters", {"clusters": ["b"]}, {"nextToken": "more"})
    stubs.stub.add_client_error("list_clusters", "ThrottlingException")
    stubs.stub.add_client_error("list_clusters", "AccessDeniedException")

    eks = seen.client("eks")

    with stubs.stub:
        found = seen.ask_all(eks.list_clusters, lambda page: page["clusters"])
        with pytest.raises(UnansweredError, match="throttled"):
            seen.ask(eks.list_clusters)
        with pytest.raises(UnansweredError, match="denied"):
            seen.ask(eks.list_clusters)

    assert found == ["a", "b"]


def test_an_account_with_nothing_in_it_is_told_what_it_lacks(keys: pytest.MonkeyPatch) -> None:
    """By an AWS that another project has written, of which EC2 and SSM take seconds to load."""
    keys.setenv("AWS_DEFAULT_REGION", REGION)
    with mock_aws():
        seen = account.connect(REGION)
        boto3.client("iam").create_role(
            RoleName="AWSServiceRoleForAmazonEKS", AssumeRolePolicyDocument="{}"
        )
        given = make_context({})
        context = Context(plan=given.plan, needs=given.needs, account=seen, at=given.at)

        found = run_checks((ROLES,), context)

    assert [each.state for each in found] == ["pass", "warn", "warn"]
