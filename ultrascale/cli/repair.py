"""`ultrascale repair`: forbid Karpenter to repair a node, or allow it again."""

from typing import Annotated

import typer

from ultrascale.cli import ask, options
from ultrascale.cli.output import say


def repair(
    file: options.DeployedFile,
    node: Annotated[str, typer.Argument(metavar="NODE", help="Name of the node.")],
    *,
    hold: Annotated[
        bool, typer.Option("--hold/--allow", help="Forbid repair of the node, or allow it again.")
    ],
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = None,
) -> None:
    """Forbid Karpenter to repair a node of this cluster, or allow it again."""
    from ultrascale import operate, plan

    cluster = plan.load(file)
    veto = operate.set_veto(cluster, ask.connected(file, kubeconfig, context), node, held=hold)
    state = "nothing repairs it" if veto.held else f"its pool's repair is {veto.repairs}"
    done = "" if veto.changed else ", as before"
    say(f"{veto.node} of pool {veto.pool}: {state}{done}")
