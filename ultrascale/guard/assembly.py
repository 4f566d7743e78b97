"""Templates that `cdk synth` wrote, held against the cluster file that they are compared for."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ultrascale.errors import QuestionError
from ultrascale.guard.templates import Template, Templates
from ultrascale.plan import names
from ultrascale.plan.model import ClusterPlan

_MANIFEST = "manifest.json"
_STACK = "aws:cloudformation:stack"
_ASSEMBLY = "cdk:cloud-assembly"
# What aws-cdk-lib writes where a stack is of no account.
# Source: https://github.com/aws/aws-cdk/blob/v2.275.0/packages/aws-cdk-lib/cx-api/lib/environment.ts
_ANY_ACCOUNT = "unknown-account"
_THIS_FILE = "name what `cdk synth` wrote for this file"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stack:
    """A stack of an assembly.

    Attributes:
        name: Its name.
        account: Account that it is for; None for whatever account is asked.
        region: AWS Region that it is for.
        template: Its template.
    """

    name: str
    account: str | None
    region: str
    template: Template


def read_assembly(folder: Path) -> Templates:
    """Return the templates that `cdk synth` wrote, by the names of their stacks.

    Args:
        folder: The assembly, or what has it in its folder ``cdk.out``.

    Raises:
        QuestionError: There is no assembly, it is damaged, or has two stacks of one name.
    """
    return {each.name: each.template for each in _read(folder)}


def read_assembly_of(plan: ClusterPlan, folder: Path, *, option: str) -> Templates:
    """Return the templates that `cdk synth` wrote for a cluster, by the names of their stacks.

    Between two clusters nothing would be replaced: all of the one would be new, and all of the
    other left as it is.

    Args:
        plan: The cluster.
        folder: The assembly, or what has it in its folder ``cdk.out``.
        option: Option that named the folder.

    Raises:
        QuestionError: As `read_assembly`; or the assembly is of another cluster, account or Region,
            one line for each.
    """
    stacks = _read(folder)
    wrong = [*_differences(stacks, plan)]
    if wrong:
        raise QuestionError([f"{option}: {folder} {each}" for each in wrong])
    return {each.name: each.template for each in stacks}


def _differences(stacks: tuple[_Stack, ...], plan: ClusterPlan) -> Iterator[str]:
    own = names.stack_description(plan.name)
    foreign = [each for each in stacks if each.template.get("Description") != own]
    if foreign:
        whose = foreign[0].template.get("Description", "no description")
        yield (
            f"has stacks that are not of {plan.name}, got {foreign[0].name}: {whose}; a file with "
            f"another name: makes a second cluster, and leaves the first one running. Put name: "
            f"back, or {_THIS_FILE}"
        )
    elif names.stack(plan.name, "cluster") not in {each.name for each in stacks}:
        yield f"has no stack {names.stack(plan.name, 'cluster')}; {_THIS_FILE}"
    elsewhere = {each.region for each in stacks} - {plan.region}
    if elsewhere:
        yield (
            f"is for {min(elsewhere)}, and the file for {plan.region}: no cluster moves to another "
            f"Region; put region: back, or {_THIS_FILE}"
        )
    accounts = {each.account for each in stacks if each.account} - {plan.account}
    if accounts and plan.account:
        yield (
            f"is for account {min(accounts)}, and the file for {plan.account}: no cluster moves to "
            f"another account; put account: back, or {_THIS_FILE}"
        )


def _read(folder: Path) -> tuple[_Stack, ...]:
    inner = folder / "cdk.out"
    root = folder if (folder / _MANIFEST).is_file() or not inner.is_dir() else inner
    found: dict[str, _Stack] = {}
    for each in _stacks(root):
        if each.name in found:
            raise QuestionError(
                [f"{root}: has the stack {each.name} twice; name the folder of one of its stages"]
            )
        found[each.name] = each
    if not found:
        raise QuestionError([f"{root}: has no stack; name a folder that `cdk synth` wrote"])
    return tuple(found.values())


def _stacks(folder: Path) -> Iterator[_Stack]:
    for id, artifact in _document(folder / _MANIFEST).get("artifacts", {}).items():
        properties = artifact.get("properties", {})
        if artifact["type"] == _STACK:
            where = artifact.get("environment", "").removeprefix("aws://")
            account, _, region = where.partition("/")
            yield _Stack(
                name=properties.get("stackName", id),
                account=None if account == _ANY_ACCOUNT else account,
                region=region,
                template=_document(folder / properties["templateFile"]),
            )
        elif artifact["type"] == _ASSEMBLY:
            yield from _stacks(folder / properties["directoryName"])


def _document(file: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise QuestionError(
            [f"{file}: {error.strerror}; name a folder that `cdk synth` wrote"]
        ) from error
    except ValueError as error:
        raise QuestionError([f"{file}: is no JSON: {error}"]) from error
    if not isinstance(found, dict):
        raise QuestionError([f"{file}: is no JSON object"])
    return cast("Mapping[str, Any]", found)
