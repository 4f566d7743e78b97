"""`ultrascale deploy`: run all checks, then deploy stack by stack."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultrascale.cli import options
from ultrascale.cli.options import PriceFileOption, price_list
from ultrascale.cli.output import (
    BEYOND,
    FAILED,
    INTERRUPTED,
    PROTECTED,
    STACK_FAILED,
)
from ultrascale.errors import UltrascaleError

if TYPE_CHECKING:
    from ultrascale.deploy import Ending

_DECLINED = 1
_STATUSES: "Mapping[Ending, int]" = {
    "deployed": 0,
    "printed": 0,
    "declined": _DECLINED,
    "beyond limits": BEYOND,
    "preflight failed": FAILED,
    "protected": PROTECTED,
    "failed": STACK_FAILED,
    "interrupted": INTERRUPTED,
}


_Profile = Annotated[
    str | None, typer.Option(help="Profile of the AWS CLI's configuration to deploy with.")
]
_Permitted = Annotated[
    list[str] | None,
    typer.Option(
        "--replace",
        metavar="NAME",
        help="Permit the loss or opening of a protected thing; repeatable.",
    ),
]
_Concurrency = Annotated[int, typer.Option(min=1, max=16, help="Stacks deployed at the same time.")]
_Assembly = Annotated[
    Path | None, typer.Option(help="Folder that `cdk synth` wrote for this file.")
]
_ImportExisting = Annotated[
    bool,
    typer.Option(
        "--import-existing-resources", help="Take over resources that an earlier deployment left."
    ),
]
_SkipPreflight = Annotated[
    bool,
    typer.Option("--skip-preflight", help="Leave the checks of `ultrascale preflight` out."),
]
_Cdk = Annotated[
    Path | None,
    typer.Option(
        "--cdk", metavar="PATH", help="Use this installed CDK CLI instead of the pinned one."
    ),
]


def deploy_command(
    file: options.ClusterFile,
    *,
    profile: _Profile = None,
    permitted: _Permitted = None,
    concurrency: _Concurrency = 4,
    assembly: _Assembly = None,
    import_existing: _ImportExisting = False,
    allow_unknown: options.AllowUnknown = False,
    skip_preflight: _SkipPreflight = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print each `cdk deploy` instead of running it.")
    ] = False,
    cdk: _Cdk = None,
    prices: PriceFileOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Deploy without asking.")] = False,
) -> None:
    """Check, plan, preflight, synthesize, compare, ask, then `cdk deploy` stack by stack.

    Ends with status 1 if the file or an option is wrong or the user declines, with 2 if a need
    exceeds the limit that AWS publishes, with 3 if preflight fails or a protected resource would be
    lost, with 4 if a stack failed, and with 130 after Ctrl-C.
    """
    from ultrascale import deploy
    from ultrascale.cli.deploy_views import TerminalView

    if not (yes or dry_run or sys.stdin.isatty()):
        raise UltrascaleError("deploy asks before it deploys; without a terminal add --yes")
    deployment = deploy.Deployment(
        file=file,
        profile=profile,
        permitted=tuple(permitted or ()),
        concurrency=concurrency,
        assembly=assembly,
        import_existing=import_existing,
        allow_unknown=allow_unknown,
        skip_preflight=skip_preflight,
        dry_run=dry_run,
        cdk=cdk,
        price_list=price_list(prices),
    )
    if status := _STATUSES[deploy.deploy(deployment, TerminalView(yes=yes))]:
        raise typer.Exit(status)
