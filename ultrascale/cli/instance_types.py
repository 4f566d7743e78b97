"""`ultrascale types` and `ultrascale matrix`: instance types, and ways to buy each."""

import json
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from typing import Annotated

import typer
from rich.box import SIMPLE

from ultrascale.catalog import (
    INSTANCE_TYPES,
    InstanceType,
    auto_mode,
    capacity_blocks,
    lookup,
    matrix,
)
from ultrascale.catalog.field_failures import FieldFailure
from ultrascale.catalog.provisioners import PROVISIONERS, Provisioner
from ultrascale.cli import complete, options
from ultrascale.cli.output import say
from ultrascale.cli.screen import Table, screen
from ultrascale.errors import UsageError

# --- `ultrascale types`: list the instance types of the catalog -----------------------------------


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
    all_types: Annotated[
        bool, typer.Option("--all", help="Types without accelerators as well, of all families.")
    ] = False,
    as_json: options.AllAsJson = False,
) -> None:
    """List the instance types that a cluster file may name; no source states a fact that is `?`.

    Without FAMILY they are those with accelerators.
    """
    short = not (family or all_types or as_json)
    rows = [
        _type_row(spec)
        for name, spec in INSTANCE_TYPES.items()
        if name.startswith(family) and (spec.accelerator is not None or not (accelerated or short))
    ]
    if not rows:
        if not any(name.startswith(family) for name in INSTANCE_TYPES):
            lookup(family)
        raise UsageError([f"FAMILY: no such type has an accelerator, got {family}; leave it out"])
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    table = Table(*_COLUMNS, box=SIMPLE)
    for row in rows:
        table.add_row(*_cells(row))
    console = screen()
    console.print(table)
    if short:
        others = len(INSTANCE_TYPES) - len(rows)
        say(f"{others} types without accelerators: `ultrascale types m7g`, or --all")


_COLUMNS = ("type", "accelerators", "EFA", "vCPUs", "GiB", "Gbit/s", "NVMe GB")


def _cells(row: Mapping[str, str | int | float | None]) -> Iterator[str]:
    """Yield what fits the 80 columns of a terminal; `--json` has the rest."""
    values = {key: "?" if value is None else _cell_text(value) for key, value in row.items()}
    number = "" if row["accelerators"] == 0 else values["accelerators"]
    name = values["accelerator"].partition(" (")[0]
    yield values["type"]
    yield f"{number} {name.removeprefix('NVIDIA ').removeprefix('AWS ')}".strip()
    rest = ("EFA cards", "vCPUs", "memory GiB", "network Gbit/s", "local NVMe GB")
    yield from (values[key] for key in rest)


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


# --- The pool matrix: printed to a terminal, or as the page `docs/pool-matrix.md` -----------------


def matrix_command(
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the page docs/pool-matrix.md.")
    ] = False,
) -> None:
    """Show which purchase options work on which provisioner, and why others do not."""
    if as_markdown:
        typer.echo(markdown(), nl=False)
    else:
        print_matrix()


def print_matrix() -> None:
    """Print every cell: whether it works, the reason of a refusal, and failures in the field."""
    console = screen()
    console.print(_overview())
    for provisioner in PROVISIONERS:
        console.print(_details(provisioner))
    say("why it is refused:")
    for cell in matrix.MATRIX.values():
        if not cell.works:
            say(f"  {cell.option} on {cell.provisioner}: {cell.source}")
    say("seen in the field:")
    for failure in _named_failures():
        # A table cell would cut the address short.
        say(f"  {failure.number:4} {failure.what}: {failure.url}")


def markdown() -> str:
    """Return the page `docs/pool-matrix.md`."""
    return "\n".join(_page_lines())


def _status(cell: matrix.Cell) -> str:
    return "works" if cell.works else "refused"


def _overview() -> Table:
    title = f"The pool matrix of ultrascale {version('ultrascale')}"
    columns = ("purchase option", *PROVISIONERS)
    table = Table(*columns, title=title, title_justify="left", box=SIMPLE)
    for row in _grid_rows():
        table.add_row(*row)
    return table


def _details(provisioner: Provisioner) -> Table:
    table = Table(provisioner, "", box=SIMPLE)
    for cell in _cells_of(provisioner):
        table.add_row(cell.option, _plain_text("\n".join(_story(cell))))
    return table


def _page_lines() -> Iterator[str]:
    yield "# The pool matrix"
    yield ""
    yield (
        "This page lists which purchase option works on which provisioner. `ultrascale check` "
        "refuses the others."
    )
    yield "`ultrascale matrix --markdown` prints this page. The rules read the same data."
    yield ""
    yield from _table(("", *(f"`{name}`" for name in PROVISIONERS)), _grid_rows())
    for provisioner in PROVISIONERS:
        yield ""
        yield f"## `{provisioner}`"
        yield ""
        columns = ("option", "becomes", "its first node", "its last node", "limits", "field")
        yield from _table(columns, (_markdown_row(cell) for cell in _cells_of(provisioner)))
    yield ""
    yield "## Limits of every cell"
    yield ""
    yield from (f"- {limit}" for limit in _common_limits())
    yield ""
    yield "## Seen in the field"
    yield ""
    yield (
        "These mistakes have cost others their capacity. Here `check` refuses them or warns, or a "
        "cluster file cannot state them."
    )
    yield ""
    failures = _named_failures()
    yield from _table(
        ("number", "what goes wrong"), ((f"[{each.number}]", each.what) for each in failures)
    )
    yield ""
    yield from (f"[{failure.number}]: {failure.url}" for failure in failures)
    yield ""


def _grid_rows() -> Iterator[tuple[str, ...]]:
    for option in matrix.PURCHASE_OPTIONS:
        cells = (matrix.cell(provisioner, option) for provisioner in PROVISIONERS)
        yield (option, *(_status(cell) for cell in cells))


def _cells_of(provisioner: Provisioner) -> Iterator[matrix.Cell]:
    return (matrix.cell(provisioner, option) for option in matrix.PURCHASE_OPTIONS)


def _story(cell: matrix.Cell) -> Iterator[str]:
    if not cell.works:
        yield f"refused: {cell.refused}; {_alternative(cell)}"
        return
    yield cell.rendered
    yield f"first node: {cell.first_node}"
    yield f"last node: {cell.last_node}"
    if limits := "; ".join(_limits(cell)):
        yield f"limits: {limits}"
    if cell.failures:
        yield f"seen in the field: {', '.join(failure.number for failure in cell.failures)}"


def _markdown_row(cell: matrix.Cell) -> tuple[str, ...]:
    if not cell.works:
        why = f"refused: [{cell.refused}]({cell.source}); {_alternative(cell)}"
        return (cell.option, why, "", "", "", "")
    field = ", ".join(f"[{failure.number}]" for failure in cell.failures)
    story = (cell.rendered, cell.first_node, cell.last_node)
    return (cell.option, *story, "; ".join(_limits(cell)), field)


def _alternative(cell: matrix.Cell) -> str:
    return "use " + " or ".join(f"{option} on {name}" for name, option in cell.instead)


def _limits(cell: matrix.Cell) -> Iterator[str]:
    if cell.names_reservation_by:
        keys = " or ".join(f"`{key}`" for key in cell.names_reservation_by)
        yield f"names its reservation by {keys}"
    if cell.option == "capacity-block":
        most = capacity_blocks.MOST_INSTANCES
        yield f"one type, one zone, at most {most} nodes (an UltraServer: its own)"
    if cell.option == "odcr":
        yield "`spill: on-demand` if you want it" if cell.spills else "never spills"
    if cell.option == "spot":
        yield "`fallback: on-demand` if you want it" if cell.falls_back else "no fallback"
    if cell.fewest_types > 1:
        yield f"at least {cell.fewest_types} instance types"


def _common_limits() -> Iterator[str]:
    by_the_day, most = capacity_blocks.LONGEST_BY_THE_DAY, capacity_blocks.LONGEST_DAYS
    yield (
        f"A Capacity Block lasts 1 to {by_the_day} days or whole weeks up to {most} days "
        "(with `extended: true` any number of days up to that). "
        f"It ends at {capacity_blocks.ENDS_AT:%H:%M} UTC, serves one pool, and takes no placement "
        "group."
    )
    yield (
        "`static` on `karpenter` and `auto-mode` needs `role: reserved`: a fixed count cannot "
        "fall back to On-Demand. Pools there that scale have no `min`."
    )
    yield (
        f"A managed node group has at most {matrix.NODES_PER_MANAGED_NODE_GROUP} nodes, and a "
        f"cluster at most {matrix.MANAGED_NODE_GROUPS} such groups. Each shard counts as a group."
    )
    yield (
        "A cluster cannot have both `karpenter` and `auto-mode`; it can have node groups beside "
        "either."
    )
    yield from _unplanned_ultraservers()
    yield "Auto Mode launches only the accelerated families that EKS lists."
    yield (
        f"EKS Auto Mode replaces every node after {auto_mode.NODE_DAYS} days at most: "
        "`check` warns of a longer window."
    )


def _unplanned_ultraservers() -> Iterator[str]:
    unplanned = [
        f"`{spec.instance_type}`"
        for spec in matrix.ultraserver_types()
        if not matrix.can_be_planned(spec)
    ]
    if unplanned:
        yield (
            f"No UltraServer type can be planned yet ({', '.join(unplanned)}): no source states "
            "how many interfaces its network card 0 takes. AWS supports GB200 only on node groups."
        )


def _named_failures() -> list[FieldFailure]:
    named = {each.number: each for cell in matrix.MATRIX.values() for each in cell.failures}
    return sorted(named.values(), key=lambda each: int(each.number.removeprefix("K")))


def _plain_text(text: str) -> str:
    """Return ``text`` for a terminal: code without its backticks."""
    return text.replace("`", "")


def _table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    header = tuple(columns)
    for cells in (header, ("---",) * len(header), *rows):
        yield f"| {' | '.join(cells)} |"
