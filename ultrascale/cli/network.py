"""`ultrascale network`: a VPC that a network team keeps."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup

from ultrascale.cli import complete, options
from ultrascale.cli.output import print_lines, say
from ultrascale.errors import UsageError
from ultrascale.frozen import to_document

if TYPE_CHECKING:
    from ultrascale.account.vpcs import SubnetRecord, VpcRecord
    from ultrascale.plan.model import NetworkNeeds

# The callback keeps the app a group even while it has only one command.
app = typer.Typer(
    cls=TyperGroup,
    help="Tell a network team what a cluster needs of its VPC.",
    rich_markup_mode=None,
)
_HEADINGS = {
    "vpc": "VPC",
    "dns": "DNS and DHCP",
    "subnets": "Subnets",
    "routes": "Routes",
    "endpoints": "Endpoints",
    "security-groups": "Security groups",
    "sharing": "Sharing",
    "tags": "Tags",
    "quotas": "Quotas",
}
_STATES = {
    "stated": "stated in the file",
    "missing": "to make",
    "too-small": "too small",
    "ours": "ours",
    "to-check": "to check",
}


@app.callback(invoke_without_command=True)
def network(context: typer.Context) -> None:
    """Tell a network team what a cluster needs of its VPC."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("needs")
def needs_command(
    file: options.ClusterFile,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print a Markdown page.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print a page for the network team: subnets, endpoints, routes, DNS, shares, quotas.

    Each need has a reason and a formula. Asks no account. The file may still lack endpoints; for a
    file that makes its own VPC, the page lists what an existing VPC would have to provide.
    """
    if as_json and as_markdown:
        raise UsageError(["--markdown: --json prints no tables; leave one of them out"])
    from ultrascale import plan
    from ultrascale.plan.needs.network import plan_network_needs

    needs = plan_network_needs(plan.draft(file))
    if as_json:
        typer.echo(json.dumps(to_document(needs), indent=2, ensure_ascii=False))
    elif as_markdown:
        print_lines(_page_lines(needs))
    else:
        _print(needs)


def _print(needs: "NetworkNeeds") -> None:
    from rich.box import SIMPLE

    from ultrascale.cli.screen import Table, screen

    console = screen()
    for line in _introduction(needs):
        say(line)
    for topic, heading in _HEADINGS.items():
        rows = [need for need in needs.needs if need.topic == topic]
        if not rows:
            continue
        table = Table(heading, "needed", "state", "why", "sum", title_justify="left", box=SIMPLE)
        for need in rows:
            table.add_row(need.subject, need.need, _STATES[need.state], need.why, need.formula)
        console.print(table)


def _introduction(needs: "NetworkNeeds") -> Iterator[str]:
    where = f"{needs.region}, account {needs.account or 'not named in the file'}"
    if needs.vpc is None:
        yield (
            f"Cluster {needs.cluster} ({where}) makes a VPC of its own. A VPC that somebody else "
            "keeps has to give in its place:"
        )
        return
    owner = f", shared by account {needs.owner}" if needs.owner is not None else ""
    yield (
        f"Cluster {needs.cluster} ({where}) is deployed into {needs.vpc}{owner}, with egress "
        f"{needs.egress}. It makes no VPC, subnet, route, gateway or flow log there, and changes "
        "none. It needs, at its full size:"
    )


def _page_lines(needs: "NetworkNeeds") -> Iterator[str]:
    yield f"# The network of cluster {needs.cluster}"
    yield ""
    yield from _introduction(needs)
    for topic, heading in _HEADINGS.items():
        rows = [need for need in needs.needs if need.topic == topic]
        if not rows:
            continue
        yield ""
        yield f"## {heading}"
        yield ""
        yield "| | needed | state | why | sum | sources |"
        yield "|---|---|---|---|---|---|"
        for need in rows:
            links = " ".join(f"[{number}]({url})" for number, url in enumerate(need.sources, 1))
            cells = (need.subject, need.need, _STATES[need.state], need.why, need.formula, links)
            yield f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


@app.command("record")
def record_command(
    vpc: Annotated[str, typer.Argument(metavar="VPC", help="Id of the VPC.")],
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="The cluster file in which to record the facts."),
    ] = None,
    region: Annotated[
        str | None,
        typer.Option("--region", autocompletion=complete.regions, help="AWS Region, without FILE."),
    ] = None,
    profile: options.Profile = None,
) -> None:
    """Record subnets, free addresses, routes and endpoints of a VPC as keys of the cluster file.

    Without FILE the command prints a `network` section. With FILE it replaces the recorded facts of
    the file's subnets and endpoints, and nothing else; addresses that the cluster holds count as
    free. Changes nothing in the account.
    """
    from ultrascale import record
    from ultrascale.account import connect
    from ultrascale.account.vpcs import require_vpc

    if file is None:
        if region is None:
            raise UsageError(["--region: which Region the VPC is in; add it, or name a FILE"])
        found = require_vpc(connect(region, profile), vpc)
        print_lines(record.network_section(found).splitlines())
        _caution(found, found.subnets)
        return
    if region is not None:
        raise UsageError(["--region: the file names its Region; leave it out"])
    from ultrascale import config
    from ultrascale.new_files import write_new_files

    reading = config.read(file)
    cluster = reading.cluster
    if cluster is None or cluster.network.vpc is None:
        missing = config.Mistake(("network",), "no vpc", "leave FILE out to get its keys", "")
        raise reading.refusal(reading.mistakes or [missing])
    found = require_vpc(connect(cluster.region, profile), vpc, cluster=cluster.name)
    update = record.updated(file.read_text("utf-8-sig"), found, file=str(file))
    if not update.changes:
        say(f"{file}: every recorded fact is as it was")
    else:
        content = update.text.encode()
        write_new_files(file.absolute().parent, {}, replaced={file.name: content})
        print_lines([f"{file}: recorded", *(f"  {line}" for line in update.changes)])
    _caution(found, update.subnets, update.present)


def _caution(
    vpc: "VpcRecord", subnets: "Sequence[SubnetRecord]", present: "Sequence[str]" = ()
) -> None:
    from ultrascale import record

    for line in record.cautions(vpc, subnets, present):
        say(line, err=True)
