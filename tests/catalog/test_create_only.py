"""The table of create-only properties: a property that it lacks lets a replacement pass."""

import pytest

from tests.support.cases import for_each
from tests.support.create_only_schemas import TABLE, known_types, schema_row
from tests.support.defined_types import defined_types
from ultrascale.catalog.cloudformation import lookup_update_behavior


@for_each(known_types())
def test_the_table_is_what_the_schema_of_the_type_says(kind: str) -> None:
    row = schema_row(kind)
    behavior = lookup_update_behavior(kind)

    assert behavior is not None
    assert " ".join(behavior.create_only) == row["create_only"]
    assert " ".join(behavior.conditional) == row["conditional"]
    assert behavior.deletes_first is (row["deletes_first"] == "yes")
    if row["identifier"]:
        assert " ".join(behavior.name) == row["identifier"]


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("AWS::FSx::FileSystem", "LustreConfiguration/DeploymentType"),
        ("AWS::FSx::FileSystem", "LustreConfiguration/EfaEnabled"),
        ("AWS::FSx::FileSystem", "LustreConfiguration/PerUnitStorageThroughput"),
        ("AWS::EKS::Cluster", "ResourcesVpcConfig/SubnetIds"),
    ],
)
def test_what_only_the_page_of_a_type_says_is_known_too(kind: str, path: str) -> None:
    behavior = lookup_update_behavior(kind)

    assert behavior is not None
    assert path in behavior.documented


def test_every_type_that_any_cluster_file_may_become_is_in_the_table_once() -> None:
    types = {*defined_types()}
    assert len(types) > 40
    assert types <= set(known_types())
    assert list(known_types()) == sorted(set(known_types()))
    assert TABLE.name == "create_only.csv"
    assert lookup_update_behavior("AWS::New::Thing") is None
