"""`ultrascale status FILE --pools`: how many nodes of each pool take work."""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from ultrascale import plan
from ultrascale.errors import QuestionError

if TYPE_CHECKING:
    from ultrascale.cluster_api.server import Cluster
    from ultrascale.operate.pool_status import PoolNodes

_WIDTH = 160


def show_pools(
    file: Path | None, job: str | None, connect: Callable[[], "Cluster"], *, as_json: bool
) -> None:
    """Print how far the nodes of each pool are.

    Raises:
        QuestionError: There is no cluster file, or a job is named beside it.
        ClusterError: Nodes may not be listed, or nobody answers.
    """
    from ultrascale.operate.pool_status import pool_nodes

    if file is None or job is not None:
        raise QuestionError(["--pools: goes with a cluster file alone; write status FILE --pools"])
    found = pool_nodes(connect(), plan.load(file))
    if as_json:
        typer.echo(json.dumps([asdict(each) for each in found], indent=2))
    else:
        _print(found)


def _print(pools: "Iterable[PoolNodes]") -> None:
    table = Table("pool", "set to", "nodes", "take work", "drifted", "the others", box=SIMPLE)
    table.columns[0].no_wrap = True
    for pool in pools:
        size = f"{pool.fewest} to {pool.most}" if pool.kept is None else str(pool.kept)
        reasons = [*pool.unfit.items(), *pool.coming.items()]
        others = ", ".join(f"{count} {why}" for why, count in reasons)
        table.add_row(pool.pool, size, str(pool.nodes), str(pool.ready), str(pool.drifted), others)
    Console(width=max(Console().width, _WIDTH), highlight=False, markup=False).print(table)
