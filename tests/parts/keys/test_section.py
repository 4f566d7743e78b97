"""Mistakes in `keys`: with a wrong key nodes die at their launch, or nothing can be deployed."""

from typing import Any

import pytest

from tests.support.pools import LUSTRE, make_cluster
from ultrascale.config import warnings
from ultrascale.errors import ConfigError
from ultrascale.parts.keys import Keys

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
        ("alias/corp", "an alias, which may later name another key"),
        ("arn:aws:kms:us-west-2:444455556666:alias/corp", "an alias, which may later name"),
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
    lines = mistakes(volumes="alias/corp", logs=arn("eu-west-1"))
    assert [line.split(": ")[1] for line in lines] == ["keys.volumes", "keys.logs"]


@pytest.mark.parametrize("id", [ID, "mrk-0123456789abcdef0123456789abcdef"])
def test_keys_of_other_accounts_and_multi_region_keys_are_taken(id: str) -> None:
    cluster = make_cluster(region="us-west-2", account="111122223333", keys={"volumes": arn(id=id)})

    assert cluster.section(Keys) == Keys(volumes=arn(id=id))


@pytest.mark.parametrize(
    ("account", "link", "bucket"),
    [
        ("111122223333", {"bucket": "datasets"}, "datasets"),
        ("444455556666", {"bucket": "datasets"}, None),
        ("111122223333", None, None),
        ("444455556666", {"bucket": "corp"}, "corp"),
    ],
)
def test_a_link_that_fsx_may_not_decrypt_is_warned_of(
    account: str, link: dict[str, str] | None, bucket: str | None
) -> None:
    key = arn().replace("444455556666", "777788889999")
    existing = {"name": "corp", "existing": "corp-datasets", "key": key}
    cluster = make_cluster(
        region="us-west-2",
        account=account,
        keys={"storage": arn()},
        storage={
            "lustre": [LUSTRE | ({"s3": link} if link else {})],
            "buckets": ["datasets", existing],
        },
    )
    told = [line for line in warnings(cluster) if "service-linked" in line]
    keys = ["storage.lustre[training].s3.bucket"] if bucket else []
    assert [line.split(": ")[0] for line in told] == keys
    assert all(f"bucket {bucket}" in line for line in told)
