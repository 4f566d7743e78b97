"""`ultrascale prices`: write the prices of a Region, fetched from AWS's Price List API."""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultrascale import plan
from ultrascale.cli import complete, options
from ultrascale.cli.output import say
from ultrascale.cli.report import write_whole
from ultrascale.errors import UltrascaleError, UnansweredError, UsageError
from ultrascale.pricing.price_file import as_csv
from ultrascale.pricing.products import ACTION, ENDPOINT, fetch_prices, refuse_region
from ultrascale.progress import progress

if TYPE_CHECKING:
    from ultrascale.account import Account
    from ultrascale.catalog.prices import Price
    from ultrascale.plan.model import PlannedPart


def prices_command(
    region: Annotated[
        str,
        typer.Argument(metavar="REGION", help="AWS Region.", autocompletion=complete.regions),
    ],
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="Cluster files; write only prices for the types of their pools.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="CSV", help="File to write.")
    ] = None,
    profile: options.AskingProfile = None,
) -> None:
    """Write the prices of a Region as CSV, for `--prices` of `plan`, `advise` and others.

    Asks AWS's Price List API, which needs the permission pricing:GetProducts and is free. With
    cluster files it writes only prices for the pools' types, including HyperPod's prices.
    """
    refuse_region(region, profile)
    plans = [plan.load(file) for file in files or ()]
    pools = [pool for cluster in plans for pool in cluster.all_pools]
    types = {name for pool in pools for name in pool.instance_types}
    sagemaker = sorted(
        {name for pool in pools if not pool.facts.in_account for name in pool.node_types}
    )
    # boto3 is slow to import.
    from ultrascale.account import connect

    prices = _fetch(connect(ENDPOINT, profile), region, sagemaker)
    kept = _prices_in_use(prices, types, (part for cluster in plans for part in cluster.parts))
    if not kept:
        raise UltrascaleError(f"{ACTION}: AWS lists no price of {region} that is of use here")
    text = as_csv(kept)
    if output is None:
        typer.echo(text, nl=False)
        return
    try:
        write_whole(output, text)
    except OSError as error:
        words = f"-o: {output} cannot be written: {error.strerror or error}"
        raise UsageError([words]) from None
    missing = sorted(types - {price.item for price in kept if price.service == "ec2"})
    say(f"{output}: {len(kept):,} prices of {region}")
    if missing:
        say(f"no On-Demand price of {', '.join(missing)} in {region}: AWS's price list has none")


def _fetch(account: "Account", region: str, sagemaker: Sequence[str]) -> Sequence["Price"]:
    try:
        with progress(f"asking AWS for the prices of {region}"):
            return fetch_prices(account, region, sagemaker)
    except UnansweredError as error:
        if not error.denied:
            raise
        raise UltrascaleError(f"{error}; allow {ACTION} on * in a policy") from None


def _prices_in_use(
    prices: Iterable["Price"], types: AbstractSet[str], parts: Iterable["PlannedPart"]
) -> Sequence["Price"]:
    """Return the prices of ``types`` and of other resources of clusters; without types, all."""
    named = types | {item.item for part in parts for item in part.standing}
    return [
        price
        for price in prices
        if not types or price.item in named or not (price.service == "ec2" or _is_class(price))
    ]


def _is_class(price: "Price") -> bool:
    return price.service == "rds" and price.item.startswith("db.")
