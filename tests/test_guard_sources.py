"""Where the guard reads templates: what it cannot read never passes for no change."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.account import Refusal, Told, denied, fake_account
from tests.changes import body, export, template
from ultrascale.errors import AccountError, QuestionError, UltrascaleError
from ultrascale.guard import read_assembly, read_deployed, synthesize
from ultrascale.guard.sources import as_deployed

DESCRIBE, GET = "cloudformation:DescribeStacks", "cloudformation:GetTemplate"
BUCKET = template({"A": body("AWS::S3::Bucket")})


def written(folder: Path, *stacks: str, **artifacts: Any) -> Path:
    """Write an assembly with stacks, and return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in stacks:
        file = f"{name}.template.json"
        (folder / file).write_text(json.dumps(BUCKET))
        artifacts[name] = {"type": "aws:cloudformation:stack", "properties": {"templateFile": file}}
    (folder / "manifest.json").write_text(json.dumps({"artifacts": artifacts}))
    return folder


# --- a saved assembly ---------------------------------------------------------------------------


def test_an_assembly_is_read_by_its_manifest_and_not_by_what_lies_beside_it(tmp_path: Path) -> None:
    written(tmp_path, "c-a")
    (tmp_path / "c-old.template.json").write_text(json.dumps(BUCKET))

    assert read_assembly(tmp_path) == {"c-a": BUCKET}


def test_a_folder_that_has_the_assembly_in_cdk_out_will_do(tmp_path: Path) -> None:
    written(tmp_path / "cdk.out", "c-a")

    assert list(read_assembly(tmp_path)) == ["c-a"]


def test_the_stages_of_a_pipeline_are_read_with_it(tmp_path: Path) -> None:
    written(tmp_path / "assembly-prod", "c-a")
    nested = {"type": "cdk:cloud-assembly", "properties": {"directoryName": "assembly-prod"}}
    written(tmp_path, "pipeline", prod=nested)

    assert set(read_assembly(tmp_path)) == {"pipeline", "c-a"}


def test_the_same_stack_in_two_stages_is_asked_about(tmp_path: Path) -> None:
    artifacts = {}
    for stage in ("test", "prod"):
        written(tmp_path / stage, "c-a")
        artifacts[stage] = {
            "type": "cdk:cloud-assembly",
            "properties": {"directoryName": stage},
        }
    written(tmp_path, **artifacts)

    with pytest.raises(QuestionError, match="c-a twice"):
        read_assembly(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [(None, "name a folder"), ("{", "is no JSON"), ("[]", "no JSON object"), ("{}", "no stack")],
)
def test_what_is_no_assembly_is_refused(tmp_path: Path, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / "manifest.json").write_text(text)

    with pytest.raises(QuestionError, match=message):
        read_assembly(tmp_path)


# --- the account --------------------------------------------------------------------------------


def stacks(**statuses: str) -> dict[str, Any]:
    return {
        "Stacks": [
            {"StackName": name, "CreationTime": "2026-11-01T00:00:00Z", "StackStatus": status}
            for name, status in statuses.items()
        ]
    }


def deployed(told: dict[str, Told], cluster: str = "c") -> Any:
    account, _ = fake_account(told)
    return read_deployed(account, cluster, {f"{cluster}-a": BUCKET})


def test_deployed_templates_are_the_ones_that_were_given() -> None:
    found = deployed(
        {
            DESCRIBE: stacks(**{"c-a": "UPDATE_COMPLETE", "other": "CREATE_COMPLETE"}),
            GET: {"TemplateBody": json.dumps(BUCKET)},
        }
    )

    assert found == {"c-a": BUCKET}


def test_a_stack_that_is_not_there_is_new() -> None:
    assert deployed({DESCRIBE: stacks()}) == {}


@pytest.mark.parametrize("status", ["REVIEW_IN_PROGRESS", "ROLLBACK_COMPLETE"])
def test_a_stack_that_was_never_made_is_new(status: str) -> None:
    assert deployed({DESCRIBE: stacks(**{"c-a": status})}) == {}


def test_a_stack_that_is_changing_is_waited_for() -> None:
    told: dict[str, Told] = {
        DESCRIBE: stacks(**{"c-a": "UPDATE_IN_PROGRESS"}),
        GET: {"TemplateBody": json.dumps(BUCKET)},
    }

    with pytest.raises(AccountError, match="UPDATE_IN_PROGRESS; wait"):
        deployed(told)


@pytest.mark.parametrize("action", [DESCRIBE, GET])
@pytest.mark.parametrize("throttled", [True, False])
def test_no_answer_never_passes_for_no_stack(action: str, throttled: bool) -> None:
    refusal = Refusal("Throttling") if throttled else denied(action)
    told: dict[str, Told] = {
        DESCRIBE: stacks(**{"c-a": "CREATE_COMPLETE"}),
        GET: {"TemplateBody": json.dumps(BUCKET)},
    }

    with pytest.raises(AccountError, match=action):
        deployed(told | {action: refusal})


def test_a_stack_of_a_pool_that_left_the_file_is_found_and_one_of_another_cluster_is_not() -> None:
    own = template({"A": body("AWS::S3::Bucket", {"X": {"Fn::ImportValue": "c-a:Vpc"}})})
    other = template({"A": body("AWS::S3::Bucket", {"X": {"Fn::ImportValue": "c-x-a:Vpc"}})})
    bodies = {"c-a": BUCKET, "c-gone": own, "c-x-b": other}

    found = deployed(
        {
            DESCRIBE: stacks(**dict.fromkeys(bodies, "CREATE_COMPLETE")),
            GET: lambda asked: {"TemplateBody": json.dumps(bodies[asked["StackName"]])},
        }
    )

    assert set(found) == {"c-a", "c-gone"}


def test_a_layer_that_left_the_file_is_found_although_it_imports_nothing() -> None:
    layers = ("c-registry", "c-pipeline", "c-pipeline-gate", "c-x-registry")

    found = deployed(
        {
            DESCRIBE: stacks(**dict.fromkeys(layers, "CREATE_COMPLETE")),
            GET: {"TemplateBody": json.dumps(BUCKET)},
        }
    )

    assert set(found) == {"c-registry"}


@pytest.mark.parametrize("text", ["Resources: !Sub x", "text", "{"])
def test_a_template_that_is_none_of_the_cdks_is_refused(text: str) -> None:
    told: dict[str, Told] = {
        DESCRIBE: stacks(**{"c-a": "CREATE_COMPLETE"}),
        GET: {"TemplateBody": text},
    }

    with pytest.raises(AccountError, match="c-a: its template"):
        deployed(told)


def test_letters_that_cloudformation_does_not_keep_are_no_change() -> None:
    new = {"c-a": template({}, **export("q", "caché"))}

    assert as_deployed(new)["c-a"]["Outputs"]["Out"]["Value"] == "cach?"


# --- a synthesis --------------------------------------------------------------------------------


def test_without_the_cdk_it_is_said_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ultrascale.guard.sources._CDK", tmp_path / "cdk")

    with pytest.raises(UltrascaleError, match="run `make synth` once"):
        synthesize(tmp_path / "c.yaml", tmp_path)


@pytest.mark.parametrize("works", [True, False])
def test_the_cdk_is_run_where_it_can_overwrite_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, works: bool
) -> None:
    program = tmp_path / "cdk"
    program.write_text("")
    node = tmp_path / "node"
    end = f"mkdir cdk.out && cp {tmp_path}/ready/* cdk.out" if works else "echo why >&2; exit 1"
    node.write_text(f'#!/bin/sh\necho "$@" > arguments\n{end}\n')
    node.chmod(0o755)
    written(tmp_path / "ready", "c-a")
    monkeypatch.setattr("ultrascale.guard.sources._CDK", program)
    monkeypatch.setattr("ultrascale.guard.sources._NODE", node)
    folder = tmp_path / "work"
    folder.mkdir()

    if works:
        assert synthesize(tmp_path / "c.yaml", folder) == {"c-a": BUCKET}
    else:
        with pytest.raises(UltrascaleError, match=r"cdk synth failed:\nwhy"):
            synthesize(tmp_path / "c.yaml", folder)

    assert f"cluster={tmp_path}/c.yaml" in (folder / "arguments").read_text()
    assert (folder / "cdk.json").is_file()
