"""Mistakes in `pipeline`: found by a run of the pipeline, each would have cost one."""

from importlib.resources import files
from typing import Any

import pytest

from tests.support.config_documents import mistakes_in
from tests.support.pools import make_document
from ultrascale.catalog import regions
from ultrascale.parts.pipeline import facts

ACCOUNT = "111122223333"
CONNECTION = "arn:aws:codeconnections:us-west-2:444455556666:connection/0aa1"


def with_pipeline(*stages: Any, account: str | None = ACCOUNT, **changes: Any) -> dict[str, Any]:
    pipeline = {
        "connection": CONNECTION,
        "repository": "example/clusters",
        "stages": [*stages] or [{"name": "prod"}],
    } | changes
    stated = {key: value for key, value in pipeline.items() if value is not None}
    return make_document(account=account, pipeline=stated)


DEV = {"name": "dev", "cluster": "clusters/dev.yaml"}


def test_every_mistake_of_a_pipeline_is_named_at_once() -> None:
    lines = mistakes_in(
        with_pipeline(
            {"name": "build"},
            {"name": "b", "region": "us-east-1", "cluster": "/b.yaml"},
            connection="x",
            repository="x",
        )
    )

    assert [line.split(": ")[0] for line in lines] == [
        "pipeline.connection",
        "pipeline.repository",
        "pipeline.stages[b].cluster",
    ]


@pytest.mark.parametrize(
    "path", ["/etc/a.yaml", "a/../b.yaml", "-x.yaml", "a b.yaml", "a.json", "$(x).yaml", "./a.yaml"]
)
def test_a_path_that_a_shell_would_read_otherwise_is_refused(path: str) -> None:
    document = with_pipeline({"name": "dev", "cluster": path})

    assert mistakes_in(document) == ["pipeline.stages[dev].cluster: form"]


def test_a_pipeline_of_several_waves_and_accounts_is_accepted() -> None:
    stages = (
        DEV | {"approval": False},
        {"name": "us", "wave": "prod", "region": "us-west-2", "account": ACCOUNT},
        {"name": "eu", "wave": "prod", "cluster": "clusters/eu.yaml", "replace": ["Lustre1A"]},
    )

    assert mistakes_in(with_pipeline(*stages, repository="group/team/clusters")) == []


def test_as_many_waves_as_a_pipeline_has_room_for_are_accepted() -> None:
    waves = ({"name": f"s{n}", "cluster": f"{n}.yaml"} for n in range(44))

    assert mistakes_in(with_pipeline(*waves)) == []


def test_connections_are_taken_where_cloudformation_has_them() -> None:
    folder = files("cfnlint") / "data" / "schemas" / "providers"
    with_connections = {
        file.name.removesuffix(".json")
        for file in folder.iterdir()
        if file.name.removesuffix(".json") in regions.REGIONS
        and b'"AWS::CodeConnections::Connection"' in file.read_bytes()
    }

    assert with_connections == facts.CONNECTION_REGIONS
