"""ARNs of the security team's KMS keys."""

import re
from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator

from ultrascale.catalog import regions
from ultrascale.config._values import WrongValueError, matching
from ultrascale.config.identity import ACCOUNT_ID, Identity

_WHOLE_ARN = "write the key's ARN, arn:aws:kms:REGION:ACCOUNT:key/ID"


def _no_alias(value: str) -> str:
    # Whoever moves an alias would have every create-only resource replaced.
    if value.startswith("alias/") or re.search(r":alias/", value):
        raise WrongValueError("an alias, which may later name another key", _WHOLE_ARN)
    return value


# Source: https://docs.aws.amazon.com/kms/latest/developerguide/concepts.html#key-id-key-ARN
KeyArn = Annotated[
    str,
    AfterValidator(_no_alias),
    matching(
        rf"arn:aws[a-z-]*:kms:[a-z0-9-]+:{ACCOUNT_ID}:key/"
        r"(?:mrk-[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})",
        "not the ARN of a KMS key",
        _WHOLE_ARN,
    ),
]


def misplaced_key(arn: str, identity: Identity) -> Iterator[str]:
    """Yield the mistake in the place of a key for a cluster, at most one."""
    _, partition, _, region, *_ = arn.split(":")
    wanted = regions.lookup_region(identity.region).partition
    if partition != wanted:
        yield f"a key of partition {partition}; {identity.region} lies in {wanted}"
    elif region != identity.region:
        yield f"a key of {region}"
