"""`ultrascale preflight`: check an AWS account against a cluster file."""

import json
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from ultrascale.cli import options
from ultrascale.cli.output import BEYOND, FAILED
from ultrascale.errors import UsageError

if TYPE_CHECKING:
    from ultrascale.plan.model import ClusterPlan
    from ultrascale.preflight.model import Context

STATUSES = {"passed": 0, "failed": FAILED, "beyond": BEYOND}


def preflight(
    file: options.ClusterFile,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="TIME", help="Time for which to check; by default now."),
    ] = None,
    profile: options.Profile = None,
    as_json: options.AllAsJson = False,
    as_policy: Annotated[
        bool,
        typer.Option("--policy", help="Print the IAM policy that this command needs, and stop."),
    ] = False,
    request_quotas: Annotated[
        bool,
        typer.Option("--request-quotas", help="Show useful quota increases, ask, request them."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Request quotas without asking.")] = False,
    allow_unknown: options.AllowUnknown = False,
) -> None:
    """Check an AWS account against a cluster file. Changes nothing without --request-quotas.

    Ends with status 2 if a need exceeds the limit that AWS publishes, and with 3 if another check
    fails, or could not ask AWS.
    """
    if as_json and (as_policy or request_quotas):
        raise UsageError(["--json: goes with neither --policy nor --request-quotas; leave it out"])
    from ultrascale import plan
    from ultrascale.plan.needs.calendar import read_time

    if as_policy:
        _print_policy(plan.load(file), requests=request_quotas)
        return
    from ultrascale.preflight import read_context

    moment = datetime.now(UTC) if at is None else read_time(at)
    context = read_context(file, moment, profile)
    if request_quotas:
        from ultrascale.cli.preflight_views import file_requests

        if not yes and not sys.stdin.isatty():
            raise UsageError(
                ["--request-quotas: asks before it files; without a terminal add --yes"]
            )
        status = 0 if file_requests(context, ask=not yes) else FAILED
    else:
        status = _check(context, as_json=as_json, allow_unknown=allow_unknown)
    if status:
        raise typer.Exit(status)


def _check(context: "Context", *, as_json: bool, allow_unknown: bool) -> int:
    """Run every check, print the findings, and return the exit status."""
    from ultrascale import preflight
    from ultrascale.cli.preflight_views import as_document, print_verdict, progress_bar
    from ultrascale.preflight import checks

    with progress_bar(len(checks.all_checks())) as progress:
        verdict = preflight.check(context, allow_unknown=allow_unknown, progress=progress)
    status = STATUSES[verdict.state]
    if as_json:
        document = as_document(context, verdict.findings, status)
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        print_verdict(context, verdict.findings)
    return status


def _print_policy(cluster: "ClusterPlan", *, requests: bool) -> None:
    from ultrascale.preflight.checks import all_checks
    from ultrascale.preflight.policy import policy
    from ultrascale.preflight.quotas import PERMISSIONS

    checks = (*all_checks(), PERMISSIONS) if requests else all_checks()
    typer.echo(json.dumps(policy(checks, cluster, cluster.account or "*"), indent=2))
