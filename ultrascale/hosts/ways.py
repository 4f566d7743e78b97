"""Ways from a VPC to the hosts that files name: a mirror, an endpoint, or none."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from ultrascale.catalog.endpoints import service_of_host
from ultrascale.hosts.known import reasons_of
from ultrascale.hosts.reader import HostUse
from ultrascale.plan.model import ClusterPlan

Way = Literal["mirror", "endpoint", "not needed", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostWay:
    """A host that a file names, with the way to it.

    Attributes:
        use: The host and its place.
        way: The way; `none` where it leads through the internet.
        reason: Endpoint, or the reason for which no way is needed; empty otherwise.
    """

    use: HostUse
    way: Way
    reason: str


def ways_to(uses: Iterable[HostUse], plan: ClusterPlan) -> Iterator[HostWay]:
    """Yield the way to each host from the VPC of a cluster.

    Args:
        uses: Hosts that its synthesized files name.
        plan: The cluster.
    """
    mirror = None if plan.mirror is None else plan.mirror.location.partition("/")[0]
    mirror = mirror and mirror.partition(":")[0]
    endpoints = {each.service for each in plan.network.endpoints if each.state != "missing"}
    for use in uses:
        service = service_of_host(use.host, plan.region)
        if use.host == mirror:
            yield HostWay(use=use, way="mirror", reason="")
        elif service in endpoints:
            yield HostWay(use=use, way="endpoint", reason=f"{service}")
        elif (reason := next(reasons_of(use, plan), None)) is not None:
            yield HostWay(use=use, way="not needed", reason=reason)
        else:
            yield HostWay(use=use, way="none", reason="")
