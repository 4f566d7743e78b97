"""Reasons of failed CloudFormation events, with their meaning and remedy.

A reason holds the message of the service that refused. The first matching pattern counts, so
narrow patterns stand before wide ones. Without an event only the CDK's own error is known.
"""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from ultrascale.catalog.tables import Row, read_rows


class DeployFailure(Row, frozen=True, kw_only=True):
    """A known reason of failed deployments."""

    where: Literal["cloudformation", "cdk"]
    """Program whose text the pattern is for."""
    pattern: str
    """Regular expression of the reason's text."""
    todo: str
    """Remedy, with ``{file}``, ``{stack}``, ``{cluster}`` and ``{region}``."""
    source: str
    """Page that explains it."""


_KNOWN = read_rows("deploy_failures.csv", DeployFailure)
FAILURES = tuple(row for row in _KNOWN if row.where == "cloudformation")
"""Known reasons of failed events of CloudFormation."""
CDK_FAILURES = tuple(row for row in _KNOWN if row.where == "cdk")
"""Known errors of the CDK CLI, for a deployment without a failed event of CloudFormation."""

_HOW_FAR = "`aws cloudformation describe-stacks --stack-name {stack} --region {region}`"
IN_PROGRESS = (
    f"CloudFormation goes on with it: wait until {_HOW_FAR} says that it ended, then deploy again"
)
"""Remedy for a stack that is still changing."""
GOES_ON = f"what CloudFormation has begun of it goes on; {_HOW_FAR} says how far it is"
"""Note on a stack that is still changing after the command has ended."""

STATUSES: Mapping[str, str] = MappingProxyType(
    {
        "ROLLBACK_COMPLETE": "it was new, and what it made is gone again, but for what is "
        "retained. `aws cloudformation delete-stack --stack-name {stack} --region {region}`, then "
        "deploy again",
        "ROLLBACK_FAILED": "it was new, and some of what it made is still there: remove that by "
        "hand, then `aws cloudformation delete-stack --stack-name {stack} --region {region}`",
        "CREATE_FAILED": "it was new, and is still there, half made: `aws cloudformation "
        "delete-stack --stack-name {stack} --region {region}`",
        "UPDATE_ROLLBACK_COMPLETE": "it is again as it was before: put the cause right, and deploy "
        "again",
        "UPDATE_ROLLBACK_FAILED": "it is stuck half-way back: put the cause right, then `aws "
        "cloudformation continue-update-rollback --stack-name {stack} --region {region}`",
        "UPDATE_FAILED": "it is paused half-way: `aws cloudformation rollback-stack --stack-name "
        "{stack} --region {region}`, then deploy again",
    }
)
"""Meaning and remedy of each status of a stack after a failed operation.

Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/view-stack-events.html
"""


def what_to_do(reason: str, among: Sequence[DeployFailure] = FAILURES) -> str | None:
    """Return the remedy for a reason; None for an unknown reason.

    Args:
        reason: Text of a failed event, or of the CDK CLI.
        among: Known reasons.
    """
    return next((row.todo for row in among if re.search(row.pattern, reason, re.IGNORECASE)), None)
