"""A CDK CLI that deploys nothing, and what CloudFormation tells of stacks."""

import json
import os
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
    """A project whose CDK CLI notes its calls.

    Attributes:
        folder: Where it is.
        cdk: Its CDK CLI.
    """

    folder: Path
    cdk: CdkCli

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
    """Return a project whose CDK CLI deploys whatever it is asked for."""
    for name in ("does", "node_modules/.bin", "node_modules/aws-cdk"):
        (folder / name).mkdir(parents=True)
    for name in ("app.py", "cdk.json"):
        (folder / name).write_text("{}")
    pinned = {"devDependencies": {"aws-cdk": VERSION}}
    (folder / "package.json").write_text(json.dumps(pinned))
    installed = folder / "node_modules" / "aws-cdk" / "package.json"
    installed.write_text(json.dumps({"version": VERSION}))
    program = folder / "node_modules" / ".bin" / "cdk"
    program.write_text(_PROGRAM.format(project=folder))
    os.chmod(program, 0o755)  # noqa: PTH101 one call
    return Project(folder=folder, cdk=CdkCli(project=folder, version=VERSION))


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
