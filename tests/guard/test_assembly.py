"""Saved assemblies: what is of another cluster never passes for all new."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.assemblies import described, write_assembly
from tests.support.changes import body, template
from tests.support.pools import make_cluster
from ultrascale.errors import QuestionError
from ultrascale.guard import read_assembly, read_assembly_of
from ultrascale.plan import plan_cluster

BUCKET = template({"A": body("AWS::S3::Bucket")})
OWN = described(BUCKET)
ACCOUNT = "918273645546"


def nested(folder: str) -> dict[str, Any]:
    """Return what an assembly says of a stage that it has in a folder."""
    return {"type": "cdk:cloud-assembly", "properties": {"directoryName": folder}}


def test_an_assembly_is_read_by_its_manifest_with_the_stages_of_a_pipeline(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "cdk.out"
    write_assembly(folder / "assembly-prod", {"c-a": BUCKET})
    write_assembly(folder, {"pipeline": BUCKET}, prod=nested("assembly-prod"))
    # What lies beside it is of none.
    (folder / "c-old.template.json").write_text(json.dumps(BUCKET))

    for each in (folder, tmp_path):
        assert read_assembly(each) == {"pipeline": BUCKET, "c-a": BUCKET}


def test_the_same_stack_in_two_stages_is_asked_about(tmp_path: Path) -> None:
    for stage in ("test", "prod"):
        write_assembly(tmp_path / stage, {"c-a": BUCKET})
    write_assembly(tmp_path, {}, test=nested("test"), prod=nested("prod"))

    with pytest.raises(QuestionError, match="c-a twice"):
        read_assembly(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "name a folder"),
        ("{", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("[]", "no JSON object"),
        ("{}", "no stack"),
    ],
)
def test_what_is_no_assembly_is_refused(tmp_path: Path, text: str | None, message: str) -> None:
    if text is not None:
        (tmp_path / "manifest.json").write_text(text)

    with pytest.raises(QuestionError, match=message):
        read_assembly(tmp_path)


@pytest.mark.parametrize("account", ["unknown-account", ACCOUNT])
def test_the_assembly_of_the_file_is_read(tmp_path: Path, account: str) -> None:
    plan = plan_cluster(make_cluster(account=ACCOUNT))
    write_assembly(tmp_path, {"research-cluster": OWN}, at=f"aws://{account}/us-west-2")

    assert read_assembly_of(plan, tmp_path, option="--against") == {"research-cluster": OWN}


@pytest.mark.parametrize(
    ("stacks", "at", "told"),
    [
        ({"old-cluster": described(BUCKET, "old")}, None, "cluster old, made .*Put name: back"),
        ({"research-eu-cluster": described(BUCKET, "research-eu")}, None, "not of research, got"),
        ({"research-cluster": BUCKET}, None, "got research-cluster: no description"),
        ({"research-pipeline": OWN}, None, "has no stack research-cluster"),
        (None, f"aws://{ACCOUNT}/eu-west-1", "for eu-west-1, and the file for us-west-2.*region:"),
        (None, "aws://111122223333/us-west-2", f"111122223333, and the file for {ACCOUNT}"),
    ],
    ids=["name", "a name that begins so", "nobody's", "pipeline", "Region", "account"],
)
def test_the_assembly_of_another_cluster_is_refused(
    tmp_path: Path, stacks: dict[str, Any] | None, at: str | None, told: str
) -> None:
    plan = plan_cluster(make_cluster(account=ACCOUNT))
    own = {"research-cluster": OWN} if stacks is None else stacks
    write_assembly(tmp_path, own, **({} if at is None else {"at": at}))

    with pytest.raises(QuestionError, match=f"^--against: {tmp_path} .*{told}"):
        read_assembly_of(plan, tmp_path, option="--against")


def test_each_difference_is_told_at_once(tmp_path: Path) -> None:
    plan = plan_cluster(make_cluster(account=ACCOUNT))
    write_assembly(tmp_path, {"old-a": BUCKET}, at="aws://111122223333/eu-west-1")

    with pytest.raises(QuestionError) as told:
        read_assembly_of(plan, tmp_path, option="--against")

    assert len(told.value.mistakes) == 3
