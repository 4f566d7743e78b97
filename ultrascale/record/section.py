"""The `network` section of a cluster file for an existing VPC."""

from collections.abc import Iterator, Sequence

from ultrascale.account.vpcs import Route, SubnetRecord, VpcRecord
from ultrascale.yaml_writer import dump_flow

_WAYS_OUT = {"transit-gateway": "transit-gateway", "none": "none"}
# Source: https://docs.aws.amazon.com/vpc/latest/privatelink/create-endpoint-service.html
_OF_PARTNERS = "vpce-svc-"


def network_section(vpc: VpcRecord) -> str:
    """Return the section as YAML; comments mark the decisions that a person has to make.

    The use of a subnet is a guess: subnets with a route to an internet gateway are public, all
    others are for nodes.

    Args:
        vpc: The VPC.
    """
    return "".join(f"{line}\n" for line in _lines(vpc))


def facts_of(subnet: SubnetRecord) -> dict[str, object]:
    """Return the facts of a subnet that a cluster file records, by their keys."""
    return {
        "free_addresses": subnet.free_addresses,
        "free_prefixes": subnet.free_prefixes,
        "route": subnet.route,
    }


def services_of(vpc: VpcRecord) -> list[str]:
    """Return the AWS services with a working endpoint that no stack of ours made."""
    return sorted(
        {
            each.service
            for each in vpc.endpoints
            if each.available
            and each.kind != "other"
            and not each.ours
            and not each.service.startswith(_OF_PARTNERS)
        }
    )


def cautions(
    vpc: VpcRecord, subnets: Sequence[SubnetRecord], present: Sequence[str] = ()
) -> Iterator[str]:
    """Yield a line for each fact that the account cannot see.

    Args:
        vpc: The VPC.
        subnets: The recorded subnets.
        present: Services that have an endpoint by the file.
    """
    for subnet in subnets:
        if subnet.most_free_prefixes > subnet.free_prefixes:
            yield (
                f"{subnet.id}: {subnet.free_prefixes:,} free /28 blocks are certain, and there may "
                f"be {subnet.most_free_prefixes:,}: interfaces of other accounts are not visible; "
                f"record it with credentials of account {vpc.owner} to know"
            )
    if unknown := [subnet.id for subnet in subnets if not subnet.reservations_known]:
        yield (
            f"{', '.join(unknown)}: reserved parts are not visible, and count as free: ask account "
            f"{vpc.owner} for the subnets' CIDR reservations"
        )
    if vpc.shared and not vpc.endpoints:
        yield (
            f"{vpc.id}: no endpoint is visible, and those of account {vpc.owner} may not be: ask "
            "its owner which there are, and write them into network.endpoints.present"
        )
    elif unseen := sorted({*present} - {each.service for each in vpc.endpoints}):
        yield (
            f"{vpc.id}: no endpoint of {', '.join(unseen)} is visible, and "
            "network.endpoints.present keeps them: take out those that are neither its owner's nor "
            "answered for by private hosted zones of a hub"
        )


def _lines(vpc: VpcRecord) -> Iterator[str]:
    yield "network:"
    yield "  vpc:"
    yield f"    id: {vpc.id}"
    if vpc.shared:
        yield f'    owner: "{vpc.owner}"'
    yield f"    cidrs: {dump_flow([str(cidr) for cidr in vpc.cidrs])}"
    yield "  subnets:  # decide on use: control-plane, nodes, accelerated, public"
    for subnet in vpc.subnets:
        entry = {
            "id": subnet.id,
            "zone": subnet.zone,
            "cidr": str(subnet.cidr),
            "use": ["public" if subnet.route == "internet-gateway" else "nodes"],
            **facts_of(subnet),
        }
        yield f"    - {dump_flow(entry)}"
    yield f"  egress: {_egress([subnet.route for subnet in vpc.subnets])}"
    yield "  endpoints:"
    yield "    create: none"
    yield f"    present: {dump_flow(services_of(vpc))}"


def _egress(routes: Sequence[Route]) -> str:
    """Return the route of the nodes' subnets to the internet."""
    ways = {_WAYS_OUT.get(route, "nat") for route in routes if route != "internet-gateway"}
    return ways.pop() if len(ways) == 1 else "nat  # subnets differ: decide on nat, transit-gateway"
