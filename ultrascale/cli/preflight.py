"""`ultrascale preflight`: check an AWS account against a cluster file."""

import json
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultrascale.cli import options
from ultrascale.cli.output import BEYOND, FAILED, print_lines, say
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
    record: Annotated[
        bool,
        typer.Option("--record", help="Write answers that differ from the catalog into FILE."),
    ] = False,
) -> None:
    """Check an AWS account against a cluster file. Changes no account without --request-quotas.

    Ends with status 2 if a need exceeds the limit that AWS publishes, and with 3 if another check
    fails, or could not ask AWS.
    """
    if as_json and (as_policy or request_quotas):
        raise UsageError(["--json: goes with neither --policy nor --request-quotas; leave it out"])
    if record and at is not None:
        raise UsageError(["--record: the answers are of today; leave --at out"])
    if record and str(file) == "-":
        raise UsageError(["--record: writes into a file, and not standard input; name a file"])
    from ultrascale import plan
    from ultrascale.plan.needs.calendar import read_time

    if as_policy:
        _print_policy(plan.load(file), requests=request_quotas)
        return
    from ultrascale.preflight import read_context

    moment = datetime.now(UTC) if at is None else read_time(at)
    if record:
        _record(file, moment.date(), profile)
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


def _record(file: Path, seen: date, profile: str | None) -> None:
    """Write the account's answers that differ from the catalog into the facts of ``file``."""
    from ultrascale import account, config, plan
    from ultrascale.preflight import recording
    from ultrascale.record import record_facts

    reading = config.read(file)
    if (cluster := reading.cluster) is None:
        raise reading.refusal(reading.mistakes)
    owner = account.connect_to_owner(cluster.region, cluster.account, profile)
    version = cluster.kubernetes.version
    types = sorted({name for pool in cluster.pools for name in pool.instance_types})
    rows = (*recording.version_rows(owner, version), *recording.type_rows(owner, types))
    lines = [*record_facts(file, rows, seen)]
    # Before, the file may have no plan: a type without cards in the catalog has none.
    lines += record_facts(
        file, [*recording.addon_rows(owner, plan.load(file).addons, version)], seen
    )
    say(f"{file}: {'recorded' if lines else 'the catalog and the recorded facts say the same'}")
    print_lines([f"  {line}" for line in lines])


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
