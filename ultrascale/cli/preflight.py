"""`ultrascale preflight`: an account, held against a cluster file before it is deployed."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultrascale import config, plan
from ultrascale.cli.needs import BEYOND
from ultrascale.errors import UltrascaleError
from ultrascale.plan.model import ClusterPlan
from ultrascale.plan.needs.calendar import read_time, window_mistakes
from ultrascale.plan.needs.report import plan_needs

if TYPE_CHECKING:
    from ultrascale.preflight.model import Context

FAILED = 3
"""Exit status where the account lacks something, or where it is not known whether it does."""


def preflight(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The cluster file.")],
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="TIME", help="Look as at this time; without it, now."),
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="Profile of the AWS CLI's configuration to ask with.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON.")] = False,
    as_policy: Annotated[
        bool,
        typer.Option("--policy", help="Print the IAM policy that this command needs; ask nothing."),
    ] = False,
    request_quotas: Annotated[
        bool,
        typer.Option("--request-quotas", help="Show the increases of quotas, ask, file them."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="File them without asking.")] = False,
    allow_unknown: Annotated[
        bool, typer.Option("--allow-unknown", help="What nobody could tell is no failure.")
    ] = False,
) -> None:
    """Look whether an account holds what a cluster file needs. Changes nothing by itself.

    Ends with status 2 where it lacks more than AWS publishes that it grants, and with 3 where it
    lacks something else, or where something could not be asked.
    """
    if as_json and (as_policy or request_quotas):
        raise UltrascaleError(
            "--json goes with neither --policy nor --request-quotas; leave it out"
        )
    if as_policy:
        _print_policy(plan.load(file), requests=request_quotas)
        return
    moment = datetime.now(UTC) if at is None else read_time(at)
    context = context_of(file, moment, profile)
    if request_quotas:
        from ultrascale.cli.quota_requests import file_requests

        if not yes and not sys.stdin.isatty():
            raise UltrascaleError(
                "--request-quotas asks before it files; without a terminal add --yes"
            )
        status = 0 if file_requests(context, ask=not yes) else FAILED
    else:
        status = look(context, as_json=as_json, allow_unknown=allow_unknown)
    if status:
        raise typer.Exit(status)


def context_of(file: Path, moment: datetime, profile: str | None) -> "Context":
    """Read the file, refuse what no account has to be asked for, and connect.

    Raises:
        ConfigError: The file is wrong, has a window that is over, or values of documentation.
        AccountError: AWS cannot be asked.
    """
    from ultrascale import account
    from ultrascale.preflight.model import Context

    reading, cluster = config.read(file), plan.load(file)
    needs = plan_needs(cluster, moment)
    mistakes = list(config.placeholders(reading))
    if reading.cluster is not None:
        mistakes += window_mistakes(reading.cluster, needs.calendar, moment)
    if mistakes:
        raise reading.refusal(mistakes)
    seen = account.connect(cluster.region, profile)
    return Context(plan=cluster, needs=needs, account=seen, at=moment)


def look(context: "Context", *, as_json: bool, allow_unknown: bool) -> int:
    """Run every check, print what is found, and return the exit status."""
    from ultrascale.cli.findings import as_document, print_findings, progress_bar
    from ultrascale.preflight.checks import CHECKS
    from ultrascale.preflight.quotas import subject_of
    from ultrascale.preflight.run import run_checks

    with progress_bar(len(CHECKS)) as progress:
        found = run_checks(CHECKS, context, progress=progress)
    beyond = {subject_of(need) for need in context.needs.quotas if need.state == "beyond"}
    failed = {each.subject for each in found if each.state == "fail"}
    unknown = any(each.state == "unknown" for each in found) and not allow_unknown
    status = BEYOND if beyond & failed else FAILED if failed or unknown else 0
    if as_json:
        document = as_document(context, found, status)
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        print_findings(context, found)
    return status


def _print_policy(cluster: ClusterPlan, *, requests: bool) -> None:
    from ultrascale.preflight.checks import CHECKS
    from ultrascale.preflight.policy import policy
    from ultrascale.preflight.quota_requests import PERMISSIONS

    checks = (*CHECKS, PERMISSIONS) if requests else CHECKS
    typer.echo(json.dumps(policy(checks, cluster, cluster.account or "*"), indent=2))
