"""`ultrascale deploy` in an account that answers, with a CDK CLI that deploys nothing."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.account import AT, connects
from tests.support.command_line import Answer, Ultrascale
from tests.support.deployments import Project, make_project, write_assembly
from tests.support.fake_aws import ID, FakeAws, Refusal, Told
from tests.support.pools import ON_DEMAND, SYSTEM_POOL, as_text, make_document, pool_document
from ultrascale.deploy.cause import EVENTS
from ultrascale.errors import UltrascaleError
from ultrascale.findings import Finding, State
from ultrascale.plan.names import stack_description
from ultrascale.preflight import checks
from ultrascale.preflight.model import Check, Context

ADMINS = {"admins": [f"arn:aws:iam::{ID}:role/Admin"]}
STACKS: dict[str, list[str]] = {
    "research-network": [],
    "research-cluster": ["research-network"],
    "research-access": ["research-cluster"],
    "research-node-addons": ["research-cluster"],
    "research-scaling": ["research-cluster"],
    "research-system": ["research-node-addons", "research-scaling"],
    "research-addons": ["research-system"],
    "research-platform": ["research-addons"],
    "research-train": ["research-platform"],
    "research-other": ["research-platform"],
}
NOT_THERE = Refusal("ValidationError", "Stack does not exist")


@dataclass(frozen=True)
class Deployment:
    """`ultrascale deploy` of a file, in an account that lacks nothing."""

    run: Ultrascale
    folder: Path
    patch: pytest.MonkeyPatch
    project: Project  # The CDK CLI that it calls
    file: Path

    def __call__(self, *options: str | Path, file: Path | None = None) -> Answer:
        return self.run("deploy", file or self.file, *options)


def prepare(run: Ultrascale, folder: Path, patch: pytest.MonkeyPatch) -> Deployment:
    """Return the command, an account that lacks nothing and a CDK CLI that deploys."""
    project = make_project(folder / "project")
    patch.setenv("ULTRASCALE_CDK", str(project.cdk.program))
    synthesizes(patch)
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "CDK_PROFILE"):
        patch.delenv(name, raising=False)
    patch.setenv("HOME", str(folder))
    has(patch)
    return Deployment(run, folder, patch, project, written(folder))


def synthesizes(monkeypatch: pytest.MonkeyPatch, told: str | None = None) -> list[Path]:
    """Let synthesis write the stacks, or fail; return each folder that it is asked to write to."""
    folders: list[Path] = []

    def synthesize(_: Path, folder: Path) -> None:
        folders.append(folder)
        if told is not None:
            raise UltrascaleError(told)
        (folder / "cdk.out").mkdir()
        write_assembly(folder / "cdk.out", STACKS)

    monkeypatch.setattr("ultrascale.guard.synthesize", synthesize)
    return folders


def written(folder: Path, **changes: object) -> Path:
    """Return a valid cluster file in ``folder``."""
    path = folder / "cluster.yaml"
    pools = [
        pool_document(name=name, purchase=ON_DEMAND, nodes={"max": 4})
        for name in ("train", "other")
    ]
    document = make_document(**{"kubernetes": ADMINS, "pools": [SYSTEM_POOL, *pools], **changes})
    path.write_text(as_text(document))
    return path


def has(
    monkeypatch: pytest.MonkeyPatch,
    *states: State,
    events: Told = NOT_THERE,
    deployed: dict[str, Told] | None = None,
) -> FakeAws:
    """Let the account answer, and preflight find ``states`` in it."""
    nothing: dict[str, Told] = {"cloudformation:DescribeStacks": {"Stacks": []}}
    answers = nothing | {EVENTS: events} | (deployed or {})
    aws = connects(monkeypatch, answers, profiles=(None, "ml"))

    def look(_: Context) -> Iterator[Finding]:
        for state in states or ("pass",):
            yield Finding(check="c", subject="it", state=state, evidence="seen")

    own = Check(name="c", title="c", actions=(), run=look)
    monkeypatch.setattr(checks, "all_checks", lambda: (own,))
    return aws


def deployed(
    *, layer: str = "network", status: str = "UPDATE_COMPLETE", **resources: object
) -> dict[str, Told]:
    """Return the answers of an account in which one stack is there, with ``resources``."""
    stack = {
        "StackName": f"research-{layer}",
        "StackStatus": status,
        "CreationTime": AT,
        "Description": stack_description("research"),
    }
    return {
        "cloudformation:DescribeStacks": {"Stacks": [stack]},
        "cloudformation:GetTemplate": {"TemplateBody": json.dumps({"Resources": resources})},
    }
