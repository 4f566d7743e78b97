"""The plan of a VPC that exists: the file's subnets, each once for every use."""

from collections.abc import Iterator, Mapping

from ultrascale import config
from ultrascale.plan.model import ExistingVpcPlan, SubnetKind, SubnetPlan

KINDS: Mapping[config.SubnetUse, SubnetKind] = {
    "public": "public",
    "control-plane": "control-plane",
    "nodes": "private",
    "accelerated": "accelerated",
}
"""Kind of the subnets of each use."""


def plan_existing_vpc(network: config.Network, account: str | None) -> ExistingVpcPlan | None:
    """Return the VPC that exists; None for one of ours.

    Args:
        network: The section of the file.
        account: Account of the cluster, where the file names it.
    """
    if network.vpc is None:
        return None
    shared = config.is_shared(network, account)
    return ExistingVpcPlan(vpc_id=network.vpc.id, owner=network.vpc.owner, shared=shared)


def existing_subnets(network: config.Network) -> Iterator[SubnetPlan]:
    """Yield the subnets of a VPC that exists, by kind and then in file order."""
    for use, kind in KINDS.items():
        for subnet in network.subnets:
            if use in subnet.use:
                yield SubnetPlan(
                    kind=kind,
                    zone=subnet.zone,
                    cidr=subnet.cidr,
                    prefix_reservations=(),
                    id=subnet.id,
                    free_addresses=subnet.free_addresses,
                    free_prefixes=subnet.free_prefixes,
                )
