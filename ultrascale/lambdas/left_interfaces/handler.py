"""Function that deletes network interfaces left by ended nodes; a schedule calls it."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import NetworkInterfaceTypeDef

    from ..events import CleanerInput


# --- Interfaces that the VPC CNI made, and that no instance holds ---------------------------------


# Codes: the interface is already deleted, or an instance has taken it meanwhile.
_GONE = ("InvalidNetworkInterfaceID.NotFound", "InvalidNetworkInterface.InUse")


def delete_left(ec2: "EC2Client", settings: "CleanerInput", *, now: datetime | None = None) -> int:
    """Delete the cluster's free interfaces that are old enough, and return their number.

    The plugin attaches a new interface within seconds, so an old free one is abandoned. Interfaces
    without a time of creation stay.

    Args:
        ec2: EC2 client.
        settings: Cluster, names of the plugin's tags, least age and most deletions of a run.
        now: Time of the run.

    Raises:
        ClientError: EC2 refused.

    Source: https://github.com/aws/amazon-vpc-cni-k8s/blob/master/pkg/awsutils/awsutils.go
    """
    youngest = (now or datetime.now(UTC)) - timedelta(minutes=settings["LeastMinutes"])
    pages = ec2.get_paginator("describe_network_interfaces").paginate(
        Filters=[
            {"Name": "status", "Values": ["available"]},
            {"Name": f"tag:{settings['ClusterTag']}", "Values": [settings["Cluster"]]},
        ]
    )
    deleted = 0
    for page in pages:
        for interface in page["NetworkInterfaces"]:
            made = _creation_time(interface, settings["MadeTag"])
            if made is None or made > youngest:
                continue
            deleted += _delete(ec2, interface)
            if deleted >= settings["Most"]:
                return deleted
    return deleted


def _creation_time(interface: "NetworkInterfaceTypeDef", tag: str) -> datetime | None:
    for each in interface.get("TagSet", ()):
        if each.get("Key") == tag:
            try:
                made = datetime.fromisoformat(each.get("Value", ""))
            except ValueError:
                return None
            return made if made.tzinfo is not None else made.replace(tzinfo=UTC)
    return None


def _delete(ec2: "EC2Client", interface: "NetworkInterfaceTypeDef") -> int:
    try:
        ec2.delete_network_interface(NetworkInterfaceId=interface.get("NetworkInterfaceId", ""))
    except ClientError as error:
        if error.response["Error"]["Code"] in _GONE:
            return 0
        raise
    return 1


# EC2 accepts five deletions a second from an account, and more at once for a while.
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
