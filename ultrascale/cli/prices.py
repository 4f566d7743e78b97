"""`ultrascale prices`: write the prices of a Region, asked of AWS's Price List API."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultrascale import plan
from ultrascale.cli import complete
from ultrascale.cli.output import say
from ultrascale.errors import UltrascaleError, UnansweredError
from ultrascale.pricing.fetch import ACTION, ENDPOINT, fetch_prices, refuse_region
from ultrascale.pricing.table import as_csv, write_csv
from ultrascale.progress import progress

if TYPE_CHECKING:
    from ultrascale.catalog.price_list import Price


def prices_command(
    region: Annotated[
        str,
        typer.Argument(metavar="REGION", help="AWS Region.", autocompletion=complete.regions),
    ],
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE]...", help="Cluster files, for the types of their pools."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="CSV", help="File to write.")
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="Profile of the AWS CLI's configuration to ask with.")
    ] = None,
) -> None:
    """Write the prices of a Region as CSV, for `--prices` of `plan`, `advise` and others.

    Asks AWS's Price List API, which takes the permission pricing:GetProducts and costs nothing.
    With cluster files only the types of their pools are written, and HyperPod's prices of them.
    """
    refuse_region(region, profile)
    plans = [plan.load(file) for file in files or ()]
    pools = [pool for each in plans for pool in each.all_pools]
    types = {name for pool in pools for name in pool.instance_types}
    hyperpod = sorted({name for pool in pools if pool.is_hyperpod for name in pool.node_types})
    # boto3 is slow to import.
    from ultrascale.account import connect

    account = connect(ENDPOINT, profile)
    try:
        with progress(f"asking AWS for the prices of {region}"):
            found = fetch_prices(account, region, hyperpod)
    except UnansweredError as error:
        if not error.denied:
            raise
        raise UltrascaleError(f"{error}; allow {ACTION} on * in a policy") from None
    backends = [each.backend for each in plans if each.backend is not None]
    databases = [each.database for each in backends if each.database is not None]
    named = types | {each.capacity.instance_class for each in databases}
    kept = [
        price
        for price in found
        if not types or price.item in named or not (price.service == "ec2" or _is_class(price))
    ]
    if not kept:
        raise UltrascaleError(f"{ACTION}: AWS lists no price of {region} that is of use here")
    text = as_csv(kept)
    if output is None:
        typer.echo(text, nl=False)
        return
    write_csv(output, text)
    missing = sorted(types - {price.item for price in kept if price.service == "ec2"})
    say(f"{output}: {len(kept):,} prices of {region}")
    if missing:
        say(f"no On-Demand price of {', '.join(missing)} in {region}: AWS's price list has none")


def _is_class(price: "Price") -> bool:
    return price.service == "rds" and price.item.startswith("db.")
