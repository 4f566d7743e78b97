"""Versions of RDS: `check` refuses those that RDS lacks, before a deployment does."""

import json
from collections.abc import Iterator
from importlib import resources
from typing import Any

import pytest

from ultrascale.parts.backend import database

# A folder of data in the package, which holds what RDS listed when it was released.
_LISTED = resources.files("cfnlint") / "data" / "schemas" / "extensions"
_TYPE: dict[database.Service, str] = {
    "aurora-serverless": "aws_rds_dbcluster",
    "rds": "aws_rds_dbinstance",
}


def listed(service: database.Service, file: str) -> set[str]:
    schema = json.loads((_LISTED / _TYPE[service] / f"{file}.json").read_text())
    return {
        version
        for case in schema["allOf"]
        if case["if"]["properties"]["Engine"].get("const") == database.ENGINES[service]
        for version in _versions(case)
    }


def _versions(case: dict[str, Any]) -> Iterator[str]:
    yield from case["if"]["properties"].get("EngineVersion", {}).get("enum", ())
    if case["then"]:
        yield from case["then"]["properties"].get("EngineVersion", {}).get("enum", ())


@pytest.mark.parametrize("service", database.VERSIONS)
def test_every_version_offered_can_be_bought_and_is_not_about_to_end(
    service: database.Service,
) -> None:
    offered = {version for minors in database.VERSIONS[service].values() for version in minors}

    assert offered <= listed(service, "engine_version") - listed(
        service, "engine_version_deprecated"
    )


@pytest.mark.parametrize("service", database.VERSIONS)
def test_a_major_version_alone_is_one_that_cloudformation_takes(service: database.Service) -> None:
    assert set(database.VERSIONS[service]) <= listed(service, "engine_version")


@pytest.mark.parametrize(
    ("service", "version", "has"),
    [
        ("aurora-serverless", "17", True),
        ("aurora-serverless", "17.9", True),
        ("aurora-serverless", "17.8", False),
        ("rds", "17.8", True),
        ("rds", "9", False),
        ("rds", "17.99", False),
    ],
)
def test_aurora_skips_releases_that_rds_has(
    service: database.Service, version: str, has: bool
) -> None:
    assert database.has_version(service, version) == has


def test_the_family_of_parameters_follows_the_major_version() -> None:
    assert database.parameter_group_family("aurora-serverless", "17.9") == "aurora-postgresql17"
    assert database.parameter_group_family("rds", "16") == "postgres16"
