"""`keys`: customer-managed KMS keys that the user's security team owns."""

import re
from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator

from ultrascale.catalog import regions
from ultrascale.config._base import Section
from ultrascale.config._errors import Mistakes, refuse
from ultrascale.config._rules import rule
from ultrascale.config._values import WrongValueError, matching
from ultrascale.config.identity import ACCOUNT_ID, Identity

_WHOLE_ARN = "write the key's ARN, arn:aws:kms:REGION:ACCOUNT:key/ID"


def _no_alias(value: str) -> str:
    # Whoever moves an alias would have every create-only resource replaced.
    if value.startswith("alias/") or re.search(r":alias/", value):
        raise WrongValueError("an alias, which may come to name another key", _WHOLE_ARN)
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


class Keys(Section):
    """Customer-managed KMS keys. They are used, and never made, changed or deleted."""

    volumes: KeyArn | None = None
    """ARN of the key of the nodes' EBS volumes, and of volumes of the storage class
    `ultrascale-gp3`.

    Default: the account's default key of EBS.
    """

    secrets: KeyArn | None = None
    """ARN of the key of the Kubernetes API's data. It cannot be taken away or changed on a cluster
    that is there.

    Default: a key that the cluster stack makes and keeps.
    """

    storage: KeyArn | None = None
    """ARN of the key of file systems, buckets and the backend's database.

    Default: keys that the stacks make and keep.
    """

    registry: KeyArn | None = None
    """ARN of the key of the images in ECR repositories, those of `images.pull_through` too.

    Default: a key that the registry stack makes and keeps.
    """

    logs: KeyArn | None = None
    """ARN of the key of log groups, of HyperPod's metrics, and of the topic of alarms.

    Default: CloudWatch's own for log groups, else keys that the stacks make and keep.
    """


def misplaced_key(arn: str, identity: Identity) -> Iterator[str]:
    """Yield what is wrong with the place of a key for a cluster, at most one thing."""
    _, partition, _, region, *_ = arn.split(":")
    wanted = regions.lookup_region(identity.region).partition
    if partition != wanted:
        yield f"a key of partition {partition}; {identity.region} lies in {wanted}"
    elif region != identity.region:
        yield f"a key of {region}"


@rule
def keys_are_of_the_region(keys: Keys, identity: Identity) -> Mistakes:
    """Refuse keys of other Regions: no service takes them.

    Source: https://docs.aws.amazon.com/kms/latest/developerguide/multi-region-keys-overview.html
    """
    for name, arn in keys.model_dump(exclude_none=True).items():
        for wrong in misplaced_key(arn, identity):
            todo = f"use a key of {identity.region}, or the replica there of a multi-Region key"
            yield refuse(name, wrong, todo)
