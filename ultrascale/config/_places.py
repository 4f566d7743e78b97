"""AWS accounts and Regions, as cluster files name them."""

import re
from typing import Annotated

from pydantic import AfterValidator

from ultrascale.catalog import regions
from ultrascale.config._base import WrongValueError, matching
from ultrascale.errors import CatalogError


def _known(value: str) -> str:
    try:
        regions.lookup_region(value)
    except CatalogError as error:
        raise WrongValueError(str(error), complete=True) from error
    return value


_ACCOUNT_ID = r"\d{12}"
AccountId = Annotated[
    str,
    matching(_ACCOUNT_ID, "not an AWS account id", "write its 12 digits in quotes"),
]
# Source: https://docs.aws.amazon.com/IAM/latest/APIReference/API_CreatePolicy.html
PolicyName = Annotated[
    str,
    matching(
        r"[\w+=,.@-]{1,128}",
        "not the name of an IAM policy",
        "write its name alone, without the ARN and without a path",
    ),
]
RegionName = Annotated[str, AfterValidator(_known)]


def is_account_id(text: str) -> bool:
    """Return whether ``text`` is the id of an AWS account."""
    return re.fullmatch(_ACCOUNT_ID, text) is not None
