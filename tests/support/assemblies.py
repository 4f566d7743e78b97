"""Assemblies as `cdk synth` writes them, of templates that a test gives."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ultrascale.plan import names

Templates = Mapping[str, Any]
PLACE = "aws://unknown-account/us-west-2"


def described(template: Mapping[str, Any], cluster: str = "research") -> Mapping[str, Any]:
    """Return a template that says whose it is."""
    return {"Description": names.stack_description(cluster), **template}


def write_assembly(folder: Path, stacks: Templates, *, at: str = PLACE, **artifacts: Any) -> Path:
    """Write an assembly with stacks and other artifacts, and return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, template in stacks.items():
        file = f"{name}.template.json"
        (folder / file).write_text(json.dumps(template))
        artifacts[name] = {
            "type": "aws:cloudformation:stack",
            "environment": at,
            "properties": {"templateFile": file},
        }
    (folder / "manifest.json").write_text(json.dumps({"artifacts": artifacts}))
    return folder
