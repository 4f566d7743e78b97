"""`ultrascale types`: list the instance types of the catalog."""

import json
from collections.abc import Mapping
from typing import Annotated

import typer
from rich.box import SIMPLE

from ultrascale.catalog import INSTANCE_TYPES, InstanceType, lookup
from ultrascale.cli import complete, options
from ultrascale.cli.screen import Table, screen
from ultrascale.errors import UsageError

_UNKNOWN = "unknown"


def types(
    family: Annotated[
        str,
        typer.Argument(
            metavar="FAMILY",
            autocompletion=complete.families,
            help="Prefix of the names, such as p5 or m7g.",
        ),
    ] = "",
    *,
    accelerated: Annotated[
        bool, typer.Option("--accelerated", help="Only types with GPUs or Neuron devices.")
    ] = False,
    as_json: options.AllAsJson = False,
) -> None:
    """List the instance types that a cluster file may name; no source states an `unknown` fact."""
    rows = [
        _type_row(spec)
        for name, spec in INSTANCE_TYPES.items()
        if name.startswith(family) and (spec.accelerator is not None or not accelerated)
    ]
    if not rows:
        if not any(name.startswith(family) for name in INSTANCE_TYPES):
            lookup(family)
        raise UsageError([f"FAMILY: no such type has an accelerator, got {family}; leave it out"])
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    table = Table(*rows[0], box=SIMPLE)
    for row in rows:
        table.add_row(*(_cell_text(value) for value in row.values()))
    console = screen()
    console.print(table)


def _type_row(spec: InstanceType) -> Mapping[str, str | int | float | None]:
    accelerator = spec.accelerator
    return {
        "type": spec.instance_type,
        "vCPUs": spec.vcpus if spec.knows("vcpus") else None,
        "memory GiB": spec.memory_mib / 1024 if spec.knows("memory_mib") else None,
        "architecture": spec.architecture if spec.knows("architecture") else None,
        "accelerators": 0 if accelerator is None else _count(spec),
        "accelerator": "" if accelerator is None else _accelerator(spec),
        "EFA cards": len(spec.efa_cards) if spec.knows("efa_cards") else None,
        "network Gbit/s": spec.network_baseline_gbps
        if spec.knows("network_baseline_gbps")
        else None,
        "local NVMe GB": spec.nvme_total_gb if spec.knows("nvme_total_gb") else None,
    }


def _count(spec: InstanceType) -> int | None:
    assert spec.accelerator is not None
    return spec.accelerator.count if spec.accelerator.knows("count") else None


def _accelerator(spec: InstanceType) -> str | None:
    assert spec.accelerator is not None
    return spec.accelerator.name if spec.accelerator.knows("name") else None


def _cell_text(value: str | float | None) -> str:
    if value is None:
        return _UNKNOWN
    return value if isinstance(value, str) else f"{value:,g}"
