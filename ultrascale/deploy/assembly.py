"""Stacks of a synthesized assembly, compared with the cluster file that is deployed."""

import json
from collections.abc import Iterator, Sequence, Set
from pathlib import Path

from ultrascale.documents import JsonObject, mapping, sequence, text
from ultrascale.errors import QuestionError
from ultrascale.frozen import Frozen
from ultrascale.plan.model import ClusterPlan
from ultrascale.plan.stacks import planned_stacks

_STACK = "aws:cloudformation:stack"
# aws-cdk-lib's word for the account of a stack that sets no account. Source:
# https://github.com/aws/aws-cdk/blob/v2.275.0/packages/aws-cdk-lib/cx-api/lib/environment.ts
_ANY_ACCOUNT = "unknown-account"


class StackArtifact(Frozen):
    """A synthesized stack."""

    name: str  # Its name
    account: str | None  # Its account; None for the account of the credentials
    region: str  # Its AWS Region
    needs: frozenset[str]  # Stacks of the same assembly that are deployed before it


def read_assembly(folder: Path) -> tuple[StackArtifact, ...]:
    """Return the stacks that `cdk synth` wrote to ``folder``, in the assembly's order.

    Raises:
        QuestionError: Nothing is synthesized there, or the manifest is damaged.
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
    stacks = {
        name: mapping(artifact)
        for name, artifact in mapping(document, "artifacts").items()
        if text(artifact, "type") == _STACK
    }
    return tuple(_stack(name, artifact, stacks.keys()) for name, artifact in stacks.items())


def _stack(name: str, artifact: JsonObject, stacks: Set[str]) -> StackArtifact:
    account, _, region = text(artifact, "environment").removeprefix("aws://").partition("/")
    return StackArtifact(
        name=name,
        account=None if account == _ANY_ACCOUNT else account,
        region=region,
        needs=frozenset(map(str, sequence(artifact, "dependencies"))) & stacks,
    )


def refuse_other(
    stacks: Sequence[StackArtifact], plan: ClusterPlan, *, account: str, folder: Path
) -> None:
    """Refuse an assembly of another cluster file, account or Region.

    Args:
        stacks: Stacks of the assembly.
        plan: The cluster to deploy.
        account: Id of the account to deploy to.
        folder: Folder of the assembly.

    Raises:
        QuestionError: The assembly is of another cluster file, account or Region; one line a
            difference.
    """
    differences = [*_differences(stacks, plan.region, account, planned_stacks(plan))]
    if differences:
        todo = "synthesize the file again, or leave the option out"
        raise QuestionError(
            [f"--assembly: {difference}, got {folder}; {todo}" for difference in differences]
        )


def _differences(
    stacks: Sequence[StackArtifact], region: str, account: str, planned: Set[str]
) -> Iterator[str]:
    for stack in stacks:
        if stack.name not in planned:
            yield f"the stack {stack.name} is none of the file's"
        if stack.region != region:
            yield f"the stack {stack.name} is for {stack.region}, and the file for {region}"
        if stack.account not in (None, account):
            yield f"the stack {stack.name} is for account {stack.account}, and not for {account}"
    for name in sorted(planned - {stack.name for stack in stacks}):
        yield f"the file's stack {name} is missing"
