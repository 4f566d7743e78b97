"""The option `--prices` of all commands that show money."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ultrascale.cli import clock
from ultrascale.cli.output import say

if TYPE_CHECKING:
    from ultrascale.catalog.price_list import PriceList

PRICES_VARIABLE = "ULTRASCALE_PRICES"
PriceFileOption = Annotated[
    Path | None,
    typer.Option(
        "--prices",
        metavar="FILE",
        envvar=PRICES_VARIABLE,
        help="Price file from `ultrascale prices`, which overrides the catalog's prices.",
    ),
]


def price_list(file: Path | None, region: str | None = None) -> "PriceList | None":
    """Return the catalog's prices, replaced by those that ``file`` states; None without a file.

    Print the remarks about the age of the prices.

    Args:
        file: The user's price file.
        region: AWS Region to price; a file without any price for the Region is reported.

    Raises:
        ConfigError: The file cannot be read, or states something wrong.
    """
    # An empty environment variable names no file.
    if file is None or str(file) in ("", "."):
        return None
    from ultrascale.catalog.price_list import catalog_prices
    from ultrascale.pricing.price_file import read_price_file

    found = read_price_file(file, clock.now().date())
    for warning in found.warnings:
        say(warning, err=True)
    held = sorted({price.region for price in found.prices})
    if region is not None and region not in held:
        say(
            f"{file}: warning: it has no price of {region}, only of {', '.join(held)}; "
            f"get them by `ultrascale prices {region}`",
            err=True,
        )
    return catalog_prices().under(found.prices)
