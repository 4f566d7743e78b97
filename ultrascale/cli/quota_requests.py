"""`ultrascale preflight --request-quotas`: increases of quotas, shown, asked for and filed."""

import typer

from ultrascale.errors import UnansweredError
from ultrascale.preflight.model import Context
from ultrascale.preflight.quota_requests import Increase, Left, file, history_command, increases


def file_requests(context: Context, *, ask: bool) -> bool:
    """Show the increases that a cluster needs, and file them once the user agrees.

    Returns:
        Whether nothing is left that AWS has to be asked for by other means.
    """
    found = list(increases(context))
    worth = [each for each in found if isinstance(each, Increase)]
    left = [each for each in found if isinstance(each, Left)]
    for each in left:
        typer.echo(f"{each.name}: no request: {each.why}")
    if not worth:
        typer.echo("no request is to be filed")
        return all(each.settled for each in left)
    for each in worth:
        typer.echo(f"{_name(each)}: {each.quota.value:,.10g} now, {each.asked:,} asked for")
    if ask:
        account, region = context.account.id, context.plan.region
        typer.confirm(f"file {len(worth)} with AWS, account {account}, {region}?", abort=True)
    filed = [_file(context, each) for each in worth]
    return all(filed) and all(each.settled for each in left)


def _file(context: Context, increase: Increase) -> bool:
    try:
        case = file(context.account, increase)
    except UnansweredError as error:
        look = "" if error.code else f"; it may be filed: {history_command(context, increase)}"
        typer.echo(f"{_name(increase)}: not filed: {error}{look}", err=True)
        return False
    typer.echo(f"{_name(increase)}: filed: {case}")
    return True


def _name(increase: Increase) -> str:
    return f"{increase.quota.code} {increase.quota.name}"
