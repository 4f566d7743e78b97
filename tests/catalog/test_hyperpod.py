"""The catalog's facts of HyperPod against CloudFormation's schemas."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import botocore.session
import cfnlint
import pytest

from ultrascale import catalog
from ultrascale.catalog import hyperpod, regions

SCHEMAS = Path(cfnlint.__file__).parent / "data" / "schemas"
CLUSTER = "AWS::SageMaker::Cluster"
GOVERNANCE = {"AWS::SageMaker::ClusterSchedulerConfig", "AWS::SageMaker::ComputeQuota"}


def names(value: object) -> Iterator[str]:
    """Yield every HyperPod instance type that a schema enumerates."""
    match value:
        case str() if value.startswith("ml."):
            yield value.removeprefix("ml.")
        case dict():
            for inner in value.values():  # pyright: ignore[reportUnknownVariableType]
                yield from names(inner)  # pyright: ignore[reportUnknownArgumentType]
        case list():
            for inner in value:  # pyright: ignore[reportUnknownVariableType]
                yield from names(inner)  # pyright: ignore[reportUnknownArgumentType]
        case _:
            pass


@pytest.fixture(scope="module")
def kinds() -> dict[str, dict[str, str]]:
    """Resource types of each Region that the catalog knows, with the schema of each."""
    return {
        path.stem: json.loads(path.read_text())
        for path in (SCHEMAS / "providers").glob("*.json")
        if path.stem in regions.REGIONS
    }


def test_hyperpod_is_offered_where_cloudformation_makes_it(
    kinds: dict[str, dict[str, str]],
) -> None:
    assert {region for region, found in kinds.items() if CLUSTER in found} == hyperpod.REGIONS


def test_task_governance_is_offered_where_cloudformation_makes_all_of_it(
    kinds: dict[str, dict[str, str]],
) -> None:
    whole = {region for region, found in kinds.items() if found.keys() >= GOVERNANCE}

    assert whole == hyperpod.GOVERNANCE_REGIONS


def test_the_instance_types_are_those_of_the_schemas_that_the_api_takes(
    kinds: dict[str, dict[str, str]],
) -> None:
    sagemaker = botocore.session.get_session().get_service_model("sagemaker")
    shape = sagemaker.shape_for("ClusterInstanceType")
    taken = set(names(cast("dict[str, list[str]]", shape.metadata)["enum"]))
    quota = SCHEMAS / "resources" / f"{kinds['us-east-1']['AWS::SageMaker::ComputeQuota']}.json"
    cluster = SCHEMAS / "extensions" / "aws_sagemaker_cluster" / "instancetype_enum.json"
    found = {name for path in (quota, cluster) for name in names(json.loads(path.read_text()))}

    assert found & taken & catalog.INSTANCE_TYPES.keys() == {
        name for name, spec in catalog.INSTANCE_TYPES.items() if spec.hyperpod
    }
