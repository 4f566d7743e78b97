"""Mirrors in Amazon ECR: repositories before the first push, and a login that hides no other."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_aws import FakeAws, denied
from ultrascale.account import Account
from ultrascale.errors import UltrascaleError
from ultrascale.parts.mirror.ecr import EcrMirror, ecr_mirror, logged_in

HOST = "111122223333.dkr.ecr.us-west-2.amazonaws.com"
KEY = "arn:aws:kms:us-west-2:111122223333:key/11111111-2222-4333-8444-555555555501"


def mirror(aws: FakeAws) -> EcrMirror:
    account = Account(id="111122223333", arn="", region="us-west-2", session=aws)
    return EcrMirror(host=HOST, registry_id="111122223333", account=account)


def test_only_repositories_that_are_missing_are_made_with_the_users_key() -> None:
    aws = FakeAws(
        answers={
            "ecr:DescribeRepositories": {"repositories": [{"repositoryName": "mirror/a"}]},
            "ecr:CreateRepository": {"repository": {}},
        }
    )

    names = ["mirror/b", "mirror/a"]
    made = mirror(aws).make_repositories(images=names, charts=["mirror/c"], key=KEY)

    image, chart = aws.parameters("ecr:CreateRepository")
    assert made == ("mirror/b", "mirror/c")
    assert [each["repositoryName"] for each in (image, chart)] == ["mirror/b", "mirror/c"]
    # Helm takes a chart by its version.
    assert [each["imageTagMutability"] for each in (image, chart)] == ["MUTABLE", "IMMUTABLE"]
    assert image["encryptionConfiguration"] == {"encryptionType": "KMS", "kmsKey": KEY}


def test_a_registry_of_another_account_asks_for_its_profile() -> None:
    aws = FakeAws(answers={"ecr:DescribeRepositories": denied("ecr:DescribeRepositories")})
    account = Account(id="444455556666", arn="", region="us-west-2", session=aws)
    foreign = EcrMirror(host=HOST, registry_id="111122223333", account=account)

    with pytest.raises(UltrascaleError, match=r"of 444455556666; name a profile of that"):
        foreign.make_repositories(images=["mirror/a"], charts=[], key=None)


def test_the_login_stands_beside_the_users_own_and_leaves_their_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own: dict[str, Any] = {"auths": {HOST: {}, "nvcr.io": {}}, "credsStore": "desktop"}
    (tmp_path / "config.json").write_text(json.dumps(own))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    token = {"authorizationToken": "QVdTOng=", "proxyEndpoint": f"https://{HOST}"}
    aws = FakeAws(answers={"ecr:GetAuthorizationToken": {"authorizationData": [token]}})

    with logged_in(mirror(aws)) as environment:
        file = Path(environment["REGISTRY_AUTH_FILE"])
        logins = json.loads(file.read_text())
        assert file.stat().st_mode & 0o077 == 0

    assert logins["auths"][HOST] == {"auth": "QVdTOng="}
    assert logins["credHelpers"] == {"nvcr.io": "desktop"}
    assert not file.exists()
    assert json.loads((tmp_path / "config.json").read_text()) == own


def test_another_registry_has_the_users_login() -> None:
    assert ecr_mirror("registry.example.com/mirror") is None
    with logged_in(None) as environment:
        assert environment == {}
