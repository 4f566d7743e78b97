"""`ultrascale sbom`: write the bill of materials of a synthesized cluster."""

import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultrascale.cli import options
from ultrascale.errors import QuestionError

if TYPE_CHECKING:
    from ultrascale.cli.screen import Table
    from ultrascale.sbom import Component

_UNSTATED = "not stated"


class Format(StrEnum):
    """Output format of a bill of materials."""

    CYCLONEDX = "cyclonedx"
    TABLE = "table"


def sbom(
    file: options.ClusterFile,
    output: Annotated[
        Format, typer.Option("--format", help="CycloneDX 1.6 as JSON, or a table.")
    ] = Format.CYCLONEDX,
    assembly: options.Assembly = Path("cdk.out"),
    manifests: options.Manifests = Path("dist"),
    pipeline: Annotated[
        bool, typer.Option("--pipeline", help="List the file's pipeline with all of its stages.")
    ] = False,
) -> None:
    """List what a deployment brings: images, charts, add-ons, machine images, runtimes, packages.

    Reads only the files of `ultrascale synth`: the same files give the same list.
    """
    from ultrascale import plan
    from ultrascale.sbom import bill_of_materials, list_app, list_components

    if pipeline:
        app = plan.load_app(file)
        if app is None:
            raise QuestionError([f"--pipeline: {file} has none; leave the option out"])
        name, components = app.name, list_app(app, assembly=assembly, manifests=manifests)
    else:
        cluster = plan.load(file)
        name = cluster.name
        components = list_components(cluster, assembly=assembly, manifests=manifests)
    if output is Format.TABLE:
        _print_table(components)
        return
    typer.echo(json.dumps(bill_of_materials(name, components), indent=2))


def _print_table(components: Sequence["Component"]) -> None:
    from rich.box import SIMPLE

    from ultrascale.cli.screen import Table, screen

    console = screen()
    table = Table("kind", "name", "version", "used by", box=SIMPLE)
    for column in table.columns:
        column.overflow = "fold"
    for component in components:
        _add_row(table, component)
        for part in component.parts:
            _add_row(table, part)
    console.print(table)


def _add_row(table: "Table", component: "Component") -> None:
    first, *others = component.used_by
    users = f"{first} and {len(others)} more" if others else first
    table.add_row(component.kind, component.name, component.version or _UNSTATED, users)
