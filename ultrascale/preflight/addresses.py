"""Address ranges of the file and of the account's VPCs, and free addresses in deployed subnets.

Sources:
    https://docs.aws.amazon.com/vpc/latest/peering/vpc-peering-basics.html (ranges that overlap)
    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_Subnet.html
"""

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network
from typing import TYPE_CHECKING

from ultrascale.catalog import eks, vpc
from ultrascale.plan.model import (
    ClusterNeeds,
    NetworkPlan,
    SubnetKind,
    SubnetPlan,
)
from ultrascale.plan.stacks import stack_of
from ultrascale.preflight.model import Check, Context, Finding

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import FilterTypeDef
    from mypy_boto3_ec2.type_defs import SubnetTypeDef as Subnet
    from mypy_boto3_ec2.type_defs import VpcTypeDef as Vpc

_NAME = "addresses"
_VPCS, _SUBNETS = "ec2:DescribeVpcs", "ec2:DescribeSubnets"
# CloudFormation sets this tag on resources of a stack; nobody else can.
_STACK_TAG = "aws:cloudformation:stack-name"
_NODE_SUBNETS: tuple[SubnetKind, ...] = ("private", "accelerated")
# Our own figure: below this share of a zone's addresses, a warning asks who uses them.
_SCARCE = 0.05
# A node's own address, and a prefix for its pods.
_A_NODE = 1 + eks.ADDRESSES_PER_PREFIX


def _address_findings(context: Context) -> Iterator[Finding]:
    plan = context.plan
    vpcs = context.account.ask_all(
        context.account.client("ec2").describe_vpcs, lambda page: page["Vpcs"]
    )
    existing = plan.network.existing
    if existing is not None:
        others = [answer for answer in vpcs if answer["VpcId"] != existing.vpc_id]
        yield overlap_finding(plan.network, others)
        return
    own = [answer for answer in vpcs if is_own(answer, plan.name)]
    yield overlap_finding(plan.network, [answer for answer in vpcs if answer not in own])
    for cluster_vpc in own:
        filters: list[FilterTypeDef] = [{"Name": "vpc-id", "Values": [cluster_vpc["VpcId"]]}]
        subnets = context.account.ask_all(
            context.account.client("ec2").describe_subnets,
            lambda page: page["Subnets"],
            Filters=filters,
        )
        yield from free_findings(plan.network, context.needs, subnets)


def is_own(answer: "Vpc", name: str) -> bool:
    """Return whether an earlier deployment of the cluster made a VPC."""
    tags = {tag["Key"]: tag["Value"] for tag in answer.get("Tags", ())}
    return tags.get(_STACK_TAG) == stack_of(name, "network")


def overlap_finding(network: NetworkPlan, others: "Sequence[Vpc]") -> Finding:
    """Return the finding whether the file's ranges overlap other VPCs of the account.

    An overlap is only a warning: it matters only if the VPCs are to be connected. Overlapping VPCs
    cannot be peered, and a transit gateway routes to only one of them.

    Args:
        network: The network of the plan.
        others: Other VPCs of the account.
    """
    overlaps = [
        f"{own} and {other} of {answer['VpcId']}"
        for own in (network.vpc_cidr, *network.secondary_cidrs)
        for answer in others
        for other in _ranges(answer)
        if own.overlaps(other)
    ]
    if not overlaps:
        return Finding(
            check=_NAME,
            subject="ranges",
            state="pass",
            evidence=f"apart from those of {len(others)} other VPCs",
        )
    return Finding(
        check=_NAME,
        subject="ranges",
        state="warn",
        evidence=f"overlapping: {'; '.join(overlaps)}",
        fix="choose other ranges in network, unless the two are never to be connected"
        if network.existing is None
        else "ask the network team, unless the two are never to be connected",
    )


def free_findings(
    network: NetworkPlan, needs: ClusterNeeds, subnets: "Sequence[Subnet]"
) -> Iterator[Finding]:
    """Yield the free addresses in the node subnets of each zone.

    The cluster's own nodes use most of the other addresses, so the usage is not added to the need
    of all nodes. No page says whether EC2 counts addresses that are reserved for prefixes as free.

    Args:
        network: The network of the plan.
        needs: Needs of the cluster at its full size.
        subnets: The subnets of the cluster's VPC.
    """
    needed = {
        (need.kind, need.zone): need.figures["addresses_needed"].value for need in needs.subnets
    }
    deployed = {answer["CidrBlock"]: answer for answer in subnets}
    zones: dict[tuple[SubnetKind, str], list[SubnetPlan]] = {}
    for subnet in network.subnets:
        if subnet.kind in _NODE_SUBNETS and str(subnet.cidr) in deployed:
            zones.setdefault((subnet.kind, subnet.zone), []).append(subnet)
    for (kind, zone), planned in zones.items():
        answers = [deployed[str(subnet.cidr)] for subnet in planned]
        free = sum(answer["AvailableIpAddressCount"] for answer in answers)
        kept = vpc.RESERVED_ADDRESSES_AT_START + vpc.RESERVED_ADDRESSES_AT_END
        total = sum(subnet.cidr.num_addresses - kept for subnet in planned)
        scarce = free < total * _SCARCE
        yield Finding(
            check=_NAME,
            subject=f"{kind} subnets in {zone}",
            state="fail" if free < _A_NODE else "warn" if scarce else "pass",
            evidence=f"{free:,} of {total:,} addresses are free; the cluster takes "
            f"{needed.get((kind, zone)) or 0:,.0f} at its full size",
            fix="see what holds them: `aws ec2 describe-network-interfaces --filters "
            f"Name=subnet-id,Values={','.join(answer['SubnetId'] for answer in answers)}`"
            if scarce
            else None,
        )


def _ranges(answer: "Vpc") -> Iterator[IPv4Network]:
    for association in answer["CidrBlockAssociationSet"]:
        if association.get("CidrBlockState", {}).get("State") in ("associating", "associated"):
            yield IPv4Network(association["CidrBlock"])


ADDRESSES = Check(
    name=_NAME,
    title="address ranges are apart from others, and have addresses left",
    actions=(_VPCS, _SUBNETS),
    run=_address_findings,
)
