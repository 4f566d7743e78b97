"""`name`, `region`, `account` and `permissions_boundary`: the keys at the top of the file."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from ultrascale.catalog import regions
from ultrascale.config._base import Section
from ultrascale.config._values import WrongValueError, dns_label, known_in_schema, matching
from ultrascale.config.releases import VersionRange
from ultrascale.errors import CatalogError


def _known(value: str) -> str:
    try:
        regions.lookup_region(value)
    except CatalogError as error:
        raise WrongValueError(str(error), complete=True) from error
    return value


# No account has the number 0.
ACCOUNT_ID = r"(?!0{12})[0-9]{12}"
AccountId = Annotated[
    str,
    matching(ACCOUNT_ID, "not an AWS account id", "write its 12 digits in quotes"),
]
# Source: https://docs.aws.amazon.com/IAM/latest/APIReference/API_CreatePolicy.html
PolicyName = Annotated[
    str,
    matching(
        r"[A-Za-z0-9_+=,.@-]{1,128}",
        "not the name of an IAM policy",
        "write its name alone, without the ARN and without a path",
    ),
]
RegionName = Annotated[str, AfterValidator(_known), known_in_schema(lambda: regions.REGIONS)]


class Identity(Section):
    """The cluster's name and its place."""

    name: Annotated[str, dns_label(40)]
    """Cluster name and prefix of the stack names: a DNS label of at most 40 characters."""

    region: RegionName
    """AWS Region. Regions of China are not supported yet."""

    account: AccountId | None = None
    """AWS account id, 12 digits in quotes. Default: the templates name no account."""

    permissions_boundary: PolicyName | None = None
    """Name of the IAM policy that bounds every role of the stacks. It must exist in the account,
    and in that of the pipeline.

    Default: none.
    """

    # Excluded from a file that is written: it says who may read this one, nothing of the cluster.
    requires: VersionRange | None = Field(default=None, exclude=True)
    """Versions of ultrascale that may read the file, such as `">=0.3,<1"`; any other says so and
    reads no further.

    Default: any.
    """

    editor_schema: str | None = Field(default=None, alias="$schema", exclude=True)
    """JSON Schema that editors hold the file against; nothing else reads it. Default: none."""


def is_account_id(text: str) -> bool:
    """Return whether ``text`` is the id of an AWS account."""
    return re.fullmatch(ACCOUNT_ID, text) is not None
