"""Function that deletes interfaces which ended nodes left; a schedule calls it."""

from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

from .interfaces import delete_left

if TYPE_CHECKING:
    from ..events import CleanerInput

# EC2 takes five deletions a second of an account, and more at once for a while.
_PATIENT = Config(retries={"mode": "adaptive", "max_attempts": 10})


def on_event(event: "CleanerInput", _context: object = None) -> None:
    """Delete the left interfaces of one cluster.

    Args:
        event: The settings.

    Raises:
        ClientError: EC2 refused.
    """
    deleted = delete_left(boto3.client("ec2", config=_PATIENT), event)
    print(f"{event['Cluster']}: {deleted} interfaces deleted")
