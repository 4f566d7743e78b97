"""Clusters in a VPC that exists: as shared by the network team, without a way out."""

from typing import Any

from tests.support.pools import POOL, SYSTEM_POOL, make_document

VPC = "vpc-0a1b2c3d4e5f60001"
OWNER = "444455556666"
GROUP = "sg-0a1b2c3d4e5f60009"
MIRROR = "111122223333.dkr.ecr.us-east-1.amazonaws.com/mirror"


def subnet(number: int, zone: str, cidr: str, *use: str, **facts: Any) -> dict[str, Any]:
    """Return a subnet of the file; ``number`` makes its id."""
    id = f"subnet-0a1b2c3d4e5f600{number:02d}"
    return {"id": id, "zone": zone, "cidr": cidr, "use": [*use], **facts}


def subnets(region: str = "us-east-1") -> list[dict[str, Any]]:
    """Return subnets of every use in two zones, accelerated ones in the first."""
    return [
        subnet(11, f"{region}a", "10.20.0.0/26", "control-plane"),
        subnet(12, f"{region}b", "10.20.0.64/26", "control-plane"),
        subnet(21, f"{region}a", "10.20.16.0/20", "nodes"),
        subnet(22, f"{region}b", "10.20.32.0/20", "nodes"),
        subnet(31, f"{region}a", "100.64.0.0/18", "accelerated"),
    ]


def existing_network(**changes: Any) -> dict[str, Any]:
    """Return the `network` of a file in which ``changes`` replace keys; None removes one."""
    network: dict[str, Any] = {
        "vpc": {"id": VPC, "cidrs": ["10.20.0.0/16", "100.64.0.0/16"]},
        "subnets": subnets(),
        "egress": "nat",
    }
    return {key: value for key, value in (network | changes).items() if value is not None}


def existing_document(*pools: dict[str, Any], **network: Any) -> dict[str, Any]:
    """Return a cluster file in a VPC that exists.

    Args:
        pools: Its pools. Default: one of system nodes, and one of accelerated nodes.
        network: Keys of its `network` that replace others; None removes one.
    """
    return make_document(
        region="us-east-1",
        network=existing_network(**network),
        images={"mirror": MIRROR} if network.get("egress") == "none" else None,
        pools=[*pools] or [SYSTEM_POOL, POOL | {"zones": ["us-east-1a"]}],
    )
