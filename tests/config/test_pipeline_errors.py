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


def connection(region: str, partition: str = "aws") -> str:
    return f"arn:{partition}:codeconnections:{region}:444455556666:connection/0aa1"


DEV = {"name": "dev", "cluster": "clusters/dev.yaml"}
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no connection": (
        with_pipeline(connection=None),
        "pipeline.connection: missing; add it",
    ),
    "no stages": (with_pipeline(stages=None), "pipeline.stages: missing; add it"),
    "no stage": (
        with_pipeline(stages=[]),
        "pipeline.stages: no stage to deploy; "
        "add one, such as {name: prod} for the cluster of this file",
    ),
    "connection that is none": (
        with_pipeline(connection="github"),
        "pipeline.connection: not the ARN of a CodeConnections connection, got 'github'; "
        "write arn:aws:codeconnections:REGION:ACCOUNT:connection/ID",
    ),
    "connection of a Region without connections": (
        with_pipeline(connection=connection("eu-south-2")),
        f"pipeline.connection: CloudFormation lists no CodeConnections in eu-south-2, "
        f"got {connection('eu-south-2')!r}; "
        "make a connection in another Region: the pipeline lies there, its clusters need not",
    ),
    "connection of no Region": (
        with_pipeline(connection=connection("us-west-9")),
        f"pipeline.connection: in no Region that is known, us-west-9, "
        f"got {connection('us-west-9')!r}; copy the ARN from the console",
    ),
    "connection of another partition": (
        with_pipeline(connection=connection("us-gov-west-1", "aws-us-gov")),
        "pipeline.connection: outside partition aws of us-west-2, "
        f"got {connection('us-gov-west-1', 'aws-us-gov')!r}; "
        "make one there: no role reaches across partitions",
    ),
    "repository without its owner": (
        with_pipeline(repository="clusters"),
        "pipeline.repository: not the path of a repository, got 'clusters'; write OWNER/NAME",
    ),
    "branch that is a command": (
        with_pipeline(branch="main; rm"),
        "pipeline.branch: not the name of a branch, got 'main; rm'; write it as main",
    ),
    "two stages of one name": (
        with_pipeline(DEV, {"name": "dev"}),
        "pipeline.stages[1].name: the name of pipeline.stages[0] too, got 'dev'; choose another",
    ),
    "stage of the CDK's own": (
        with_pipeline({"name": "assets"}),
        "pipeline.stages[assets].name: the name of a stage that each pipeline has, got 'assets'; "
        "choose another",
    ),
    "stage named after a wave": (
        with_pipeline(DEV | {"wave": "prod"}, {"name": "prod"}),
        "pipeline.stages[prod].name: the name of a wave too, got 'prod'; choose another",
    ),
    "wave in two parts": (
        with_pipeline(
            {"name": "a", "cluster": "a.yaml", "wave": "first"},
            {"name": "b", "cluster": "b.yaml"},
            {"name": "c", "cluster": "c.yaml", "wave": "first"},
        ),
        "pipeline.stages[c].wave: parted from stages[a] of the same wave, got 'first'; "
        "let them follow each other: a wave is deployed as one",
    ),
    "too many waves": (
        with_pipeline(*({"name": f"s{n}", "cluster": f"{n}.yaml"} for n in range(46))),
        "pipeline.stages: 46 waves, and a pipeline has room for 45; "
        "write the same wave: for several stages",
    ),
    "one file twice": (
        with_pipeline(DEV, DEV | {"name": "again"}),
        "pipeline.stages[again].cluster: the cluster of stages[dev] too, got 'clusters/dev.yaml'; "
        "keep one of them",
    ),
    "this file twice": (
        with_pipeline({"name": "a"}, {"name": "b"}),
        "pipeline.stages[b]: this file's cluster, which stages[a] deploys already; "
        "add cluster: with another file",
    ),
    "no account to deploy into": (
        with_pipeline(account=None),
        "pipeline.stages[prod]: deploys this file, which states no account; "
        "write account: beside region:, at the top",
    ),
    "another account than the file's": (
        with_pipeline({"name": "prod", "account": "999988887777"}),
        "pipeline.stages[prod].account: not the account of this file, got '999988887777'; "
        "this file says 111122223333; leave it out, or add cluster:",
    ),
    "another Region than the file's": (
        with_pipeline({"name": "prod", "region": "us-east-1"}),
        "pipeline.stages[prod].region: not the Region of this file, got 'us-east-1'; "
        "this file says us-west-2; leave it out, or add cluster:",
    ),
    "file outside the repository": (
        with_pipeline({"name": "dev", "cluster": "../dev.yaml"}),
        "pipeline.stages[dev].cluster: not the path of a cluster file within the repository, "
        "got '../dev.yaml'; write it from the repository's folder, as clusters/prod.yaml",
    ),
    "resource that is a command": (
        with_pipeline({"name": "prod", "replace": ["a; b"]}),
        "pipeline.stages[prod].replace[0]: not the name or the logical id of a resource, got "
        "'a; b'; "
        "write it as `ultrascale diff` prints it",
    ),
    "nobody to tell": (
        with_pipeline(notifications={"email": "platform"}),
        "pipeline.notifications.email: not an e-mail address, got 'platform'; "
        "write it as name@example.com",
    ),
    "stage with an unknown key": (
        with_pipeline({"name": "prod", "aproval": False}),
        "pipeline.stages[prod].aproval: unknown key 'aproval'; did you mean approval?",
    ),
}


@pytest.mark.parametrize(("document", "line"), BAD.values(), ids=list(BAD))
def test_a_mistake_is_named_with_its_key_its_value_and_a_way_out(
    document: dict[str, Any], line: str
) -> None:
    assert line in mistakes_in(document)


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
    (line,) = mistakes_in(with_pipeline({"name": "dev", "cluster": path}))

    assert line.startswith("pipeline.stages[dev].cluster: not the path of a cluster file")


def test_a_pipeline_of_several_waves_and_accounts_is_accepted() -> None:
    stages = (
        DEV | {"approval": False},
        {"name": "us", "wave": "prod", "region": "us-west-2", "account": ACCOUNT},
        {"name": "eu", "wave": "prod", "cluster": "clusters/eu.yaml", "replace": ["Lustre1A"]},
    )

    assert mistakes_in(with_pipeline(*stages, repository="group/team/clusters")) == []


def test_as_many_waves_as_a_pipeline_has_room_for_are_accepted() -> None:
    waves = ({"name": f"s{n}", "cluster": f"{n}.yaml"} for n in range(45))

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
