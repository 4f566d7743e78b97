"""A CDK CLI that deploys nothing, and what CloudFormation tells of stacks."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.support.fake_aws import REGION
from ultrascale.cdk_cli import CdkCli

_PROGRAM = """#!/bin/sh
project={project}
echo "$@" >> $project/calls
[ ! -f "$project/does/$2" ] || . "$project/does/$2"
echo " ✅  $2"
"""
VERSION = "2.1148.1"


@dataclass(frozen=True, kw_only=True)
class Project:
    """A folder whose CDK CLI notes its calls."""

    folder: Path  # Where it is
    cdk: CdkCli  # Its CDK CLI

    @property
    def calls(self) -> list[list[str]]:
        """The arguments of each call."""
        noted = self.folder / "calls"
        return [line.split() for line in noted.read_text().splitlines()] if noted.exists() else []

    @property
    def deployed(self) -> list[str]:
        """Each stack whose `cdk deploy` was begun."""
        return [call[1] for call in self.calls]

    def does(self, stack: str, script: str) -> None:
        """Let `cdk deploy` of a stack do something before it is through."""
        (self.folder / "does" / stack).write_text(script)

    def fails(self, stack: str, says: str = "❌ it failed") -> None:
        """Let `cdk deploy` of a stack fail."""
        self.does(stack, f"echo '{says}'; exit 1\n")


def make_project(folder: Path) -> Project:
    """Return a folder whose CDK CLI deploys whatever it is asked for."""
    (folder / "does").mkdir(parents=True)
    program = install_cdk(folder, _PROGRAM.format(project=folder))
    return Project(folder=folder, cdk=CdkCli(program=program, version=VERSION))


def install_cdk(folder: Path, script: str, *, version: str = VERSION) -> Path:
    """Write a program as npm installs the CDK CLI in ``folder``, and return it."""
    package, programs = (folder / "node_modules" / name for name in ("aws-cdk", ".bin"))
    for each in (package, programs):
        each.mkdir(parents=True, exist_ok=True)
    (package / "package.json").write_text(json.dumps({"name": "aws-cdk", "version": version}))
    program = programs / "cdk"
    program.write_text(script)
    program.chmod(0o755)
    return program


def write_assembly(
    folder: Path,
    stacks: Mapping[str, Sequence[str]],
    *,
    region: str = REGION,
    account: str = "unknown-account",
) -> None:
    """Write what `cdk synth` writes of ``stacks``, each with those that it needs."""
    artifacts: dict[str, Any] = {}
    for name, needs in stacks.items():
        artifacts[f"{name}.assets"] = {"type": "cdk:asset-manifest"}
        artifacts[name] = {
            "type": "aws:cloudformation:stack",
            "environment": f"aws://{account}/{region}",
            "dependencies": [*needs, f"{name}.assets"],
            "properties": {"templateFile": f"{name}.template.json"},
        }
        (folder / f"{name}.template.json").write_text('{"Resources": {}}')
    (folder / "manifest.json").write_text(json.dumps({"artifacts": artifacts}))


BEGAN = datetime(2026, 12, 1, tzinfo=UTC)


def event(number: int, status: str, reason: str = "", **changes: Any) -> dict[str, Any]:
    """Return an event of a resource, the newer the higher its number."""
    id = "arn:aws:cloudformation:us-west-2:918273645546:stack/research-train/1"
    told: dict[str, Any] = {
        "StackId": id,
        "StackName": "research-train",
        "EventId": str(number),
        "LogicalResourceId": "NodeGroup",
        "PhysicalResourceId": "train-1",
        "ResourceType": "AWS::EKS::Nodegroup",
        "Timestamp": BEGAN + timedelta(seconds=number),
        "ResourceStatus": status,
    }
    return told | ({"ResourceStatusReason": reason} if reason else {}) | changes


def stack_event(number: int, status: str, reason: str = "") -> dict[str, Any]:
    """Return an event of the stack itself."""
    kind = "AWS::CloudFormation::Stack"
    told = event(number, status, reason, LogicalResourceId="research-train", ResourceType=kind)
    return told | {"PhysicalResourceId": told["StackId"]}
