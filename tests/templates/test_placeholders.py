"""Placeholders of the documentation never reach an account."""

from pathlib import Path

import pytest

from tests.support.folders import ROOT
from tests.support.pools import as_text
from ultrascale import config

ADMINS = "kubernetes.admins.0"
# Every key of the files that a user has to fill in.
IN_THE_FILES = {
    "auto-mode": [ADMINS, "pools.2.purchase.reservation"],
    "existing-estate": [
        *("network.vpc.id", "network.vpc.owner"),
        *(f"network.subnets.{number}.id" for number in range(5)),
        *(ADMINS, "kubernetes.access.0.role", "kubernetes.access.1.role"),
        *("keys.volumes", "keys.secrets", "keys.storage", "pools.1.purchase.reservation"),
        *("storage.lustre.0.existing.id", "storage.lustre.0.existing.security_group"),
        *("storage.buckets.0.key", "images.mirror"),
    ],
    "hybrid-hyperpod": [ADMINS, "pools.1.purchase.plan", "observability.alarms.email"],
    "llm-kueue": [ADMINS, "pools.1.purchase.reservation"],
    "mixed-capacity": [
        ADMINS,
        *(f"pools.{number}.purchase.reservation" for number in (1, 3, 4, 5)),
    ],
    "serving": [ADMINS, "observability.alarms.email"],
    "trainium-bert": ["kubernetes.endpoint.public_cidrs.0", ADMINS],
    "ultra-100k": [ADMINS],
}


def keys(reading: config.Reading) -> list[str]:
    return [".".join(str(part) for part in each.at) for each in config.placeholders(reading)]


def found(text: str, folder: Path) -> list[str]:
    file = folder / "cluster.yaml"
    file.write_text(as_text({"name": [{"note": text}]}))
    return [each.wrong for each in config.placeholders(config.read(file))]


@pytest.mark.parametrize("name", IN_THE_FILES)
def test_each_example_names_the_keys_that_are_to_be_filled_in(name: str) -> None:
    reading = config.read(ROOT / "clusters" / f"{name}.yaml")

    assert keys(reading) == IN_THE_FILES[name]


@pytest.mark.parametrize(
    "text",
    [
        "111122223333",
        "arn:aws:iam::123456789012:role/Admin",
        "444455556666",
        "777777777777",
        "203.0.113.7",
        "192.0.2.0/24",
        "198.51.100.255/32",
        "me@example.com",
        "https://www.example.org/x",
        "cr-0123456789abcdef0",
        "cr-0aaaaaaaaaaaaaaa1",
        "vpc-1a2b3c4d",
        "subnet-0a1b2c3d4e5f60011",
        "cr-0abcdef1234567890",
        "AKIAIOSFODNN7EXAMPLE",
        "amzn-s3-demo-bucket",
    ],
)
def test_what_documentation_is_written_with_is_found(text: str, tmp_path: Path) -> None:
    assert len(found(text, tmp_path)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "918273645546",
        "arn:aws:iam::304871926650:role/Admin",
        "203.0.114.7",
        "10.0.0.0/16",
        "1.192.0.2.9",
        "999.0.2.1",
        "examples.com",
        "my-example-team",
        "cr-0f3c9a7be41d28650",
        "2026-12-01T11:30:00Z",
        "sha256-1111222233334444",
    ],
)
def test_what_is_a_users_own_is_left_alone(text: str, tmp_path: Path) -> None:
    assert found(text, tmp_path) == []
