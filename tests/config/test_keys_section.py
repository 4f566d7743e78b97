"""Mistakes in `keys`: with a wrong key nodes die at their launch, or nothing can be deployed."""

from typing import Any

import pytest

from tests.support.pools import make_cluster
from ultrascale.errors import ConfigError

ID = "11111111-2222-4333-8444-555555555501"


def arn(region: str = "us-west-2", *, partition: str = "aws", id: str = ID) -> str:
    return f"arn:{partition}:kms:{region}:444455556666:key/{id}"


def mistakes(**keys: Any) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        make_cluster(region="us-west-2", keys=keys)
    return caught.value.mistakes


@pytest.mark.parametrize("use", ["volumes", "secrets", "storage", "registry", "logs"])
def test_a_key_of_another_region_is_refused_for_each_use(use: str) -> None:
    (found,) = mistakes(**{use: arn("us-east-1")})

    assert found == (
        f"cluster file: keys.{use}: a key of us-east-1, got {arn('us-east-1')!r}; "
        "use a key of us-west-2, or the replica there of a multi-Region key"
    )


@pytest.mark.parametrize(
    ("written", "wrong"),
    [
        ("alias/corp", "an alias, which may come to name another key"),
        ("arn:aws:kms:us-west-2:444455556666:alias/corp", "an alias, which may come to name"),
        (ID, "not the ARN of a KMS key"),
        (arn(id="mrk-short"), "not the ARN of a KMS key"),
        (arn(partition="aws-us-gov"), "a key of partition aws-us-gov; us-west-2 lies in aws"),
        (arn().replace("444455556666", "000000000000"), "not the ARN of a KMS key"),
    ],
)
def test_what_names_no_one_key_of_the_region_is_refused(written: str, wrong: str) -> None:
    (found,) = mistakes(volumes=written)

    assert found.startswith("cluster file: keys.volumes: ")
    assert wrong in found


def test_every_wrong_key_is_named_at_once() -> None:
    found = mistakes(volumes="alias/corp", logs=arn("eu-west-1"))

    assert [line.split(": ")[1] for line in found] == ["keys.volumes", "keys.logs"]


@pytest.mark.parametrize("id", [ID, "mrk-0123456789abcdef0123456789abcdef"])
def test_keys_of_other_accounts_and_multi_region_keys_are_taken(id: str) -> None:
    cluster = make_cluster(region="us-west-2", account="111122223333", keys={"volumes": arn(id=id)})

    assert cluster.keys.volumes == arn(id=id)
