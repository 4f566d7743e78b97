"""The stacks of a synthesized assembly: the folder `cdk.out` that `cdk synth` writes."""

import json
from collections.abc import Mapping
from pathlib import Path

from ultrascale.documents import JsonObject, mapping, text
from ultrascale.errors import UltrascaleError
from ultrascale.plan.model import ClusterPlan
from ultrascale.plan.stacks import planned_stacks

_STACK = "aws:cloudformation:stack"


def read_stacks(folder: Path) -> Mapping[str, Path]:
    """Return the template of each stack of an assembly, without nested assemblies.

    Raises:
        UltrascaleError: Nothing is synthesized there, or it is incomplete.
    """
    manifest = folder / "manifest.json"
    if not manifest.exists():
        raise UltrascaleError(f"{folder}: nothing is synthesized here; run `ultrascale synth FILE`")
    artifacts = mapping(read_json(manifest), "artifacts")
    return {
        text(mapping(artifact, "properties"), "stackName") or name: folder
        / text(mapping(artifact, "properties"), "templateFile")
        for name, artifact in artifacts.items()
        if text(artifact, "type") == _STACK
    }


def read_stacks_of(plan: ClusterPlan, folder: Path) -> Mapping[str, Path]:
    """Return the template of each stack of a cluster's assembly.

    Raises:
        UltrascaleError: As `read_stacks`; or the assembly is of another file, or of an earlier
            version of this one.
    """
    stacks = read_stacks(folder)
    if different := stacks.keys() ^ planned_stacks(plan):
        message = (
            f"{folder}: not what the file of {plan.name} becomes now: {min(different)} is in one "
            "alone; run `ultrascale synth` for the file"
        )
        raise UltrascaleError(message)
    return stacks


def read_json(file: Path) -> JsonObject:
    """Return the content of a file of an assembly.

    Raises:
        UltrascaleError: The file is incomplete: a synthesis was interrupted.
    """
    try:
        return mapping(json.loads(file.read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError) as error:
        raise UltrascaleError(f"{file}: {error}; run `ultrascale synth` again") from None
