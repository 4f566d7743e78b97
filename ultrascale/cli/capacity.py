"""`ultrascale capacity`: find capacity that AWS sells now, and buy it."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec.structs import replace
from typer.core import TyperGroup

from ultrascale.cli import complete, options
from ultrascale.cli.options import PriceFileOption, price_list
from ultrascale.cli.output import say
from ultrascale.errors import ConfigError
from ultrascale.progress import progress

if TYPE_CHECKING:
    from ultrascale.account import Account
    from ultrascale.config import Reading
    from ultrascale.offers.model import Found, Offer, Request
    from ultrascale.offers.request import Wish
    from ultrascale.plan.advice.purchases import PoolOfFile

NOTHING_FOUND = 3
"""Exit status if AWS offers nothing that fits."""
NOT_KNOWN = 4
"""Exit status if a purchase may or may not have been made."""

_FIND = "find"
# Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateTrainingPlan.html
_NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,63}")


class _FindByDefault(TyperGroup):
    """Command group that passes words without a command name to `find`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 typer hides it
        if ctx.resilient_parsing and not args:
            return super().parse_args(ctx, args)
        words = args if args[:1] and args[0] in {*self.commands, "-h", "--help"} else [_FIND, *args]
        return super().parse_args(ctx, words)

    def shell_complete(
        self,
        ctx: Any,  # noqa: ANN401 typer hides it
        incomplete: str,
    ) -> Any:  # noqa: ANN401 typer hides it
        own = super().shell_complete(ctx, incomplete)
        return [*own, *self.commands[_FIND].shell_complete(ctx, incomplete)]


app = typer.Typer(
    cls=_FindByDefault,
    help="Find Capacity Blocks, training plans and Spot; buy one.",
    rich_markup_mode=None,
)

Regions = Annotated[
    list[str] | None,
    typer.Option("--region", autocompletion=complete.regions, help="AWS Region; repeatable."),
]
Types = Annotated[
    list[str] | None,
    typer.Option("--type", autocompletion=complete.instance_types, help="EC2 type; repeatable."),
]
Count = Annotated[int | None, typer.Option(help="Nodes.")]
Days = Annotated[int | None, typer.Option(help="Length in days: 1 to 14, or whole weeks to 182.")]
Starts = Annotated[str | None, typer.Option(metavar="ISO", help="Earliest start; by default now.")]
Until = Annotated[str | None, typer.Option(metavar="ISO", help="Latest start.")]


def now() -> datetime:
    """Return the time, in UTC."""
    return datetime.now(UTC)


_WantedFile = Annotated[
    Path | None,
    typer.Argument(metavar="FILE", help="A cluster file, for whose pools to find capacity."),
]
_WantedPool = Annotated[
    str | None,
    typer.Argument(metavar="POOL", autocompletion=complete.pools, help="Only this pool."),
]
_Zones = Annotated[
    list[str] | None, typer.Option(help="Name or id of a possible zone; repeatable.")
]
_Options = Annotated[
    list[str] | None,
    typer.Option(help="Find only capacity-block, training-plan or spot; repeatable."),
]


@app.command(_FIND)
def find_command(
    file: _WantedFile = None,
    pool: _WantedPool = None,
    *,
    region: Regions = None,
    type_: Types = None,
    count: Count = None,
    days: Days = None,
    starts: Starts = None,
    until: Until = None,
    zone: _Zones = None,
    option: _Options = None,
    sort: Annotated[str, typer.Option(help="Order: price or start.")] = "price",
    profile: options.Profile = None,
    prices: PriceFileOption = None,
    json_: options.AsJson = False,
) -> None:
    """Show the capacity that AWS sells now. The word `find` may be left out.

    Ends with status 3 if AWS offers nothing that a cluster can use.
    """
    from ultrascale.cli.offer_views import as_json, print_offers
    from ultrascale.offers.model import ORDERS, ranked, repriced
    from ultrascale.offers.request import Wish, warnings

    at = now()
    known = price_list(prices)
    wish = Wish(
        # A value that is named twice is requested once.
        regions=tuple(dict.fromkeys(region or ())),
        instance_types=tuple(dict.fromkeys(type_ or ())),
        count=count,
        days=days,
        starts=starts,
        until=until,
        zones=tuple(zone or ()),
        options=tuple(option or ()),
    )
    order = ORDERS.get(sort)
    wrong = [f"--sort: unknown {sort!r}; write {' or '.join(ORDERS)}"] if order is None else []
    try:
        requests, reading = _requests(file, pool, wish, at)
    except ConfigError as error:
        raise ConfigError([*wrong, *error.diagnostics]) from None
    if order is None:
        raise ConfigError(wrong)
    for line in dict.fromkeys(line for request in requests for line in warnings(request)):
        say(f"warning: {line}", err=True)
    found, _ = _found_offers(requests, at, profile, reading)
    if known is not None:
        found = repriced(found, known)
    offers = ranked(found.offers, order)
    if json_:
        typer.echo(as_json(found, offers, requests, at, profile, file))
    else:
        print_offers(found, offers, requests, profile, file)
    if all(offer.refused for offer in offers):
        raise typer.Exit(NOTHING_FOUND)


def _requests(
    file: Path | None, pool: str | None, wish: "Wish", at: datetime
) -> "tuple[Sequence[Request], Reading | None]":
    """Return the requests to AWS, and the cluster file that they are for, if any.

    Raises:
        ConfigError: The file or an option is wrong.
    """
    from ultrascale import config, plan
    from ultrascale.offers.request import request_of, requests_of

    if file is None:
        return [request_of(wish, at)], None
    return requests_of(plan.load(file), pool, wish, at), config.read(file)


_Confirmation = Annotated[
    str | None,
    typer.Option(metavar="OFFERING-ID", help="Repeat the id; without it, nothing is bought."),
]
_Fee = Annotated[
    str | None, typer.Option(help="Refuse if the fee differs from this, such as 1234.56.")
]
_PurchaseName = Annotated[
    str | None, typer.Option(help="Name of the purchase; by default it follows from the id.")
]
_Reserved = Annotated[
    list[str] | None, typer.Option(help="capacity-block or training-plan; by default either.")
]
_Type = Annotated[
    str | None, typer.Option("--type", autocompletion=complete.instance_types, help="EC2 type.")
]
_File = Annotated[
    Path | None,
    typer.Option(help="Cluster file for the offering; refuse an offering that it cannot use."),
]
_Pool = Annotated[
    str | None, typer.Option(autocompletion=complete.pools, help="Pool of that file.")
]


@app.command("buy")
def buy_command_(
    offering: Annotated[str, typer.Argument(metavar="OFFERING-ID", help="Id that `find` printed.")],
    *,
    confirm: _Confirmation = None,
    fee: _Fee = None,
    name: _PurchaseName = None,
    option: _Reserved = None,
    region: options.Region = None,
    type_: _Type = None,
    count: Count = None,
    days: Days = None,
    starts: Starts = None,
    until: Until = None,
    file: _File = None,
    pool: _Pool = None,
    profile: options.Profile = None,
) -> None:
    """Buy an offering, which is paid up front and final. Asks AWS for the offering again first.

    Prints the terms, then the keys for the cluster file. Give the options with which `find` printed
    the offering. Refuses an offering that no cluster can use. Ends with status 4 if AWS may have
    sold the offering, and did not say so.
    it.
    """
    from ultrascale.cli.offer_views import buy_command
    from ultrascale.offers import purchase
    from ultrascale.offers.model import RESERVED
    from ultrascale.offers.request import Wish

    at = now()
    place = _pool_of_file(file, pool)
    wish = Wish(
        regions=(region,) if region else (),
        instance_types=(type_,) if type_ else (),
        count=count,
        days=days,
        starts=starts,
        until=until,
        options=tuple(option or RESERVED),
    )
    request, seen = _valid_search(offering, confirm, fee, name, wish, at)
    found, account = _found_offers([request], at, profile)
    offer = purchase.offered(found, offering)
    if seen is not None:
        purchase.refuse_other_fee(offer, seen)
    purchase.refuse_unusable(offer, at=at, place=place)
    name = name or purchase.default_name(offer)
    for line in purchase.terms(offer, account, purchase.quota_of(offer, account), name):
        say(line, err=True)
    if confirm is None:
        again = buy_command(replace(offer, request=replace(request, pool=pool)), profile, file)
        named = f" --name {name}" if name != purchase.default_name(offer) else ""
        say(f"nothing was bought; to buy it: {again}{named} --confirm {offer.id}", err=True)
        raise typer.Exit(1)
    _buy(offer, account, name)


def _pool_of_file(file: Path | None, pool: str | None) -> "PoolOfFile | None":
    """Return the pool that an offering is for; None if the user names no pool.

    Raises:
        ConfigError: The file has mistakes or no such pool, or one of the two options is missing.
    """
    from ultrascale import config, plan
    from ultrascale.plan.advice.purchases import PoolOfFile

    if file is None and pool is None:
        return None
    if file is None or pool is None:
        given, missing = ("--pool", "--file") if file is None else ("--file", "--pool")
        raise ConfigError([f"{given}: means a pool of a cluster file; add {missing}"])
    pools = dict.fromkeys(planned.pool for planned in plan.load(file).all_pools)
    if pool not in pools:
        raise ConfigError([f"--pool: no such pool, got {pool!r}; {file} has {', '.join(pools)}"])
    return PoolOfFile(reading=config.read(file), pool=pool)


def _valid_search(
    offering: str,
    confirm: str | None,
    fee: str | None,
    name: str | None,
    wish: "Wish",
    at: datetime,
) -> "tuple[Request, Decimal | None]":
    """Return the search for the offering, and the fee that the user saw.

    Raises:
        ConfigError: The options are wrong; all mistakes at once.
    """
    from ultrascale.offers.request import request_of

    wrong: list[str] = []
    if confirm is not None and confirm != offering:
        wrong.append(f"--confirm: not the id of the offering, got {confirm!r}; write {offering}")
    if name is not None and _NAME.fullmatch(name) is None:
        wrong.append(f"--name: got {name!r}; write at most 64 letters and digits, joined by '-'")
    if "spot" in wish.options:
        wrong.append("--option: spot is not bought; a pool asks for it by `purchase.option`")
    seen: Decimal | None = None
    try:
        seen = None if fee is None else Decimal(fee)
    except InvalidOperation:
        wrong.append(f"--fee: not a number, got {fee!r}; write it as 1234.56")
    try:
        request = request_of(wish, at)
    except ConfigError as error:
        raise ConfigError([*wrong, *error.diagnostics]) from None
    if wrong:
        raise ConfigError(wrong)
    return request, seen


def _found_offers(
    requests: "Sequence[Request]",
    at: datetime,
    profile: str | None,
    reading: "Reading | None" = None,
) -> "tuple[Found, Account]":
    """Return AWS's offers, and show on a terminal that AWS is asked."""
    # boto3 is slow to import, and no other command needs it.
    from ultrascale.account import connect
    from ultrascale.offers.find import find, region_gates

    account = connect(requests[0].regions[0], profile)
    with progress("asking AWS for offers"):
        return find(requests, account, at, region_gates(), reading), account


def _buy(offer: "Offer", account: "Account", name: str) -> None:
    from ultrascale.offers.purchase import UnsureError, buy, look_command

    look = look_command(offer, account, name)
    say(f"asking AWS once; should no word of it follow, look at: {look}", err=True)
    try:
        keys = buy(offer, account, name)
    except UnsureError as error:
        say(str(error), err=True)
        raise typer.Exit(NOT_KNOWN) from None
    say(f"bought; whether AWS has taken the payment: {look}", err=True)
    say("keys of the pool that runs on it, for the cluster file:", err=True)
    for key in keys:
        typer.echo(key)
