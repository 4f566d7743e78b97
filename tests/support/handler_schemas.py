"""Permissions of resource types, from CloudFormation's schemas.

`python -m tests.support.handler_schemas` writes the catalog's table anew, and
`python -m tests.support.handler_schemas cdk.out` fails where it lacks a type of those templates,
or the catalog an AWS managed policy of their roles.
"""

import csv
import json
import sys
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

from tests.support.folders import ROOT
from ultrascale.plan.delivery.execution_policy import (
    ExecutionScope,
    execution_policies,
    roles_boundary,
)

TABLE = ROOT / "ultrascale" / "catalog" / "handler_permissions.csv"
# The Region where CloudFormation has the most types.
_REGION = "us-east-1"


@cache
def _index() -> Mapping[str, str]:
    folder = files("cfnlint") / "data" / "schemas" / "providers"
    return json.loads((folder / f"{_REGION}.json").read_text())


def permissions(kind: str) -> frozenset[str] | None:
    """Return the permissions of every handler of ``kind``; None where its schema has none."""
    path = files("cfnlint") / "data" / "schemas" / "resources" / f"{_index()[kind]}.json"
    schema: Mapping[str, Any] = json.loads(path.read_text())
    handlers = cast("Mapping[str, Mapping[str, list[str]]] | None", schema.get("handlers"))
    if handlers is None:
        return None
    return frozenset(action for each in handlers.values() for action in each["permissions"])


def kinds_in(folder: Path) -> frozenset[str]:
    """Return the type of every resource in the templates of a folder."""
    return frozenset(
        resource["Type"]
        for path in folder.glob("**/*.template.json")
        for resource in json.loads(path.read_text()).get("Resources", {}).values()
    )


def write_table() -> None:
    """Write the permissions of the types that the table names."""
    with TABLE.open(newline="") as file:
        kinds = sorted({row["type"] for row in csv.DictReader(file)})
    rows = [(kind, " ".join(sorted(permissions(kind) or ()))) for kind in kinds]
    with TABLE.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("type", "permissions"))
        writer.writerows(rows)


def check(folder: Path) -> None:
    """Fail where the catalog lacks a type of the templates of a folder, or one of their policies.

    Raises:
        ConfigError: The catalog lacks one.
    """
    anywhere = ExecutionScope(cluster="any", partition="aws", account="0" * 12, region="us-east-1")
    execution_policies(kinds_in(folder), anywhere)
    paths = folder.glob("**/*.template.json")
    roles_boundary((json.loads(path.read_text()) for path in paths), anywhere)


if __name__ == "__main__":
    if sys.argv[1:]:
        check(Path(sys.argv[1]))
    else:
        write_table()
