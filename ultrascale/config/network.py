"""`network`: address ranges and zones."""

from ipaddress import IPv4Network
from typing import Annotated

from pydantic import Field

from ultrascale.catalog import vpc
from ultrascale.config._base import Model, Network4


class PodBlocks(Model):
    """Consecutive /16 blocks, the largest that a VPC takes, of one larger range.

    Attributes:
        count: How many.
        from_: The range they are taken from, key ``from``.
    """

    count: Annotated[int, Field(ge=1)]
    from_: Network4 = Field(alias="from")


class Network(Model):
    """The address ranges and zones of the VPC.

    Attributes:
        vpc_cidr: Primary IPv4 range.
        pod_cidrs: Secondary ranges as the file states them; read `pod_blocks`.
        zones: Zones that get subnets, by name or by zone id.
    """

    vpc_cidr: Network4
    pod_cidrs: tuple[Network4, ...] | PodBlocks = ()
    zones: tuple[str, ...]

    @property
    def pod_blocks(self) -> tuple[IPv4Network, ...]:
        """The secondary ranges, in order. Accelerated nodes and pods draw from them."""
        return blocks(self.pod_cidrs)


def blocks(pod_cidrs: tuple[IPv4Network, ...] | PodBlocks) -> tuple[IPv4Network, ...]:
    """Return the ranges that ``pod_cidrs`` stands for.

    A `PodBlocks` that asks for more blocks than its range has gives those that exist.
    """
    if not isinstance(pod_cidrs, PodBlocks):
        return pod_cidrs
    if pod_cidrs.from_.prefixlen > vpc.LARGEST_RANGE_MASK:
        return ()
    subnets = pod_cidrs.from_.subnets(new_prefix=vpc.LARGEST_RANGE_MASK)
    return tuple(block for _, block in zip(range(pod_cidrs.count), subnets, strict=False))
