"""The stacks of a synthesized assembly, held against the cluster file they are deployed for."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ultrascale.errors import QuestionError
from ultrascale.plan.model import ClusterPlan
from ultrascale.plan.stacks import planned_stacks

_STACK = "aws:cloudformation:stack"
# What aws-cdk-lib writes where a stack is of no account.
# Source: https://github.com/aws/aws-cdk/blob/v2.275.0/packages/aws-cdk-lib/cx-api/lib/environment.ts
_ANY_ACCOUNT = "unknown-account"


@dataclass(frozen=True, slots=True, kw_only=True)
class StackArtifact:
    """A stack as it is synthesized.

    Attributes:
        name: Its name.
        account: Account that it is for; None for whatever account is asked.
        region: AWS Region that it is for.
        needs: Stacks of the same assembly that have to be deployed before it.
    """

    name: str
    account: str | None
    region: str
    needs: frozenset[str]


def read_assembly(folder: Path) -> tuple[StackArtifact, ...]:
    """Return the stacks that `cdk synth` wrote to ``folder``, in their order.

    Raises:
        QuestionError: Nothing is synthesized there, or it is damaged.
    """
    manifest = folder / "manifest.json"
    if not manifest.is_file():
        raise QuestionError(
            [f"--assembly: nothing is synthesized there, got {folder}; leave the option out"]
        )
    try:
        document = json.loads(manifest.read_text(encoding="utf-8"))
    except ValueError as error:
        raise QuestionError([f"--assembly: {manifest} is no JSON: {error}"]) from error
    artifacts: Mapping[str, Mapping[str, Any]] = document.get("artifacts", {})
    found = {name for name, each in artifacts.items() if each["type"] == _STACK}
    return tuple(_stack(name, artifacts[name], found) for name in artifacts if name in found)


def _stack(name: str, artifact: Mapping[str, Any], among: set[str]) -> StackArtifact:
    account, _, region = artifact["environment"].removeprefix("aws://").partition("/")
    return StackArtifact(
        name=name,
        account=None if account == _ANY_ACCOUNT else account,
        region=region,
        needs=frozenset(artifact.get("dependencies", ())) & among,
    )


def refuse_other(
    stacks: Sequence[StackArtifact], plan: ClusterPlan, *, account: str, folder: Path
) -> None:
    """Refuse an assembly that is of another cluster file, account or Region.

    Args:
        stacks: Its stacks.
        plan: The cluster that is to be deployed.
        account: Id of the account that is deployed to.
        folder: Where the assembly is.

    Raises:
        QuestionError: It is; one line for each difference.
    """
    found = [*_differences(stacks, plan, account)]
    if found:
        todo = "synthesize the file anew, or leave the option out"
        raise QuestionError([f"--assembly: {each}, got {folder}; {todo}" for each in found])


def _differences(stacks: Sequence[StackArtifact], plan: ClusterPlan, account: str) -> Iterator[str]:
    planned = planned_stacks(plan)
    for stack in stacks:
        if stack.name not in planned:
            yield f"the stack {stack.name} is none of the file's"
        if stack.region != plan.region:
            yield f"the stack {stack.name} is for {stack.region}, and the file for {plan.region}"
        if stack.account not in (None, account):
            yield f"the stack {stack.name} is for account {stack.account}, and not for {account}"
    for name in sorted(planned - {stack.name for stack in stacks}):
        yield f"the file's stack {name} is missing"
