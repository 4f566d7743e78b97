"""Address ranges and free addresses, endpoints of the VPC, and rules of security groups."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from ipaddress import IPv4Network, collapse_addresses
from typing import TYPE_CHECKING

from ultrascale.account.zones import ACTION as ZONES_ACTION
from ultrascale.account.zones import zones_of
from ultrascale.catalog import eks, regions, vpc
from ultrascale.findings import Finding, State
from ultrascale.plan.model import ClusterNeeds, NetworkPlan, SubnetKind, SubnetPlan
from ultrascale.plan.stacks import stack_of
from ultrascale.preflight.model import Check, Context

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import FilterTypeDef
    from mypy_boto3_ec2.type_defs import IpPermissionOutputTypeDef as Rule
    from mypy_boto3_ec2.type_defs import SubnetTypeDef as Subnet
    from mypy_boto3_ec2.type_defs import VpcTypeDef as Vpc


# --- Address ranges of the file and of the account's VPCs, and free addresses in deployed subnets
# Sources:
#     https://docs.aws.amazon.com/vpc/latest/peering/vpc-peering-basics.html (ranges that overlap)
#     https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_Subnet.html


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


# --- Interface endpoints of the VPC: every zone of the file must have the endpoint's service ------
# A service may lack zones of a Region, and CloudFormation creates no endpoint with a subnet in such
# a zone.
#
# Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeVpcEndpointServices.html


_ACTION = "ec2:DescribeVpcEndpointServices"
_ENDPOINTS = "endpoints"


def _endpoint_findings(context: Context) -> Iterator[Finding]:
    network, region = context.plan.network, context.plan.region
    services = {f"com.amazonaws.{region}.{name}": name for name in network.interface_endpoints}
    if not services:
        return
    # EC2 refuses a request that names a service which the Region lacks; a filter ignores the name.
    details = context.account.ask_all(
        context.account.client("ec2").describe_vpc_endpoint_services,
        lambda page: page["ServiceDetails"],
        Filters=[{"Name": "service-name", "Values": sorted(services)}],
    )
    there = {
        services[service["ServiceName"]]: frozenset[str](service["AvailabilityZones"])
        for service in details
        if service["ServiceName"] in services
    }
    for name in network.interface_endpoints:
        if name not in there:
            fix = "choose another Region, or list the endpoints to make in network.endpoints.create"
            yield _finding(name, "fail", f"{region} has no endpoint of this service", fix)
    for name, zone in _zone_names(context).items():
        yield _zone_finding(name, zone, there, ours=network.existing is None)


def _zone_names(context: Context) -> Mapping[str, str]:
    """Return the account's names of zones with endpoints; zones that it lacks are left out."""
    wanted = dict.fromkeys(subnet.zone for subnet in context.plan.network.of_kind("private"))
    if not any(map(regions.is_zone_id, wanted)):
        return {name: name for name in wanted}
    known = zones_of(context.account)
    return {name: known[name].name for name in wanted if name in known}


def _zone_finding(name: str, zone: str, there: Mapping[str, Set[str]], *, ours: bool) -> Finding:
    missing = [service for service, offered in there.items() if zone not in offered]
    if not missing:
        return _finding(name, "pass", f"{len(there)} services have endpoints there")
    todo = (
        "leave it out of network.zones"
        if ours
        else "have them made in other zones, and list them in network.endpoints.present"
    )
    fix = f"{todo}: the stack of the network would fail"
    return _finding(name, "fail", f"no endpoint there of {', '.join(missing)}", fix)


def _finding(subject: str, state: State, evidence: str, fix: str | None = None) -> Finding:
    return Finding(check=_ENDPOINTS, subject=subject, state=state, evidence=evidence, fix=fix)


ENDPOINTS = Check(
    name=_ENDPOINTS,
    title="AWS has the VPC's interface endpoints in the file's zones",
    actions=(_ACTION, ZONES_ACTION),
    run=_endpoint_findings,
)


# --- Rules of security groups: the address ranges that they allow on a port -----------------------


_TCP, _ALL = "tcp", "-1"


def closed_ranges(
    rules: "Iterable[Rule]",
    *,
    ports: tuple[int, int],
    ranges: Sequence[IPv4Network],
    groups: Collection[str] = (),
) -> tuple[IPv4Network, ...]:
    """Return, for each port, the ranges that the TCP rules of one direction do not allow.

    Several rules may open parts of a range, and some of the ports.

    Args:
        rules: The rules.
        ports: First and last port.
        ranges: Addresses of the other side.
        groups: Security groups of all addresses on the other side; a rule for one of
            them lets all of them through.
    """
    rules = [rule for rule in rules if rule.get("IpProtocol") in (_TCP, _ALL)]
    first, last = ports
    shut: set[IPv4Network] = set()
    for port in range(first, last + 1):
        here = [rule for rule in rules if _has_port(rule, port)]
        named = {pair.get("GroupId") for rule in here for pair in rule.get("UserIdGroupPairs", [])}
        if named & set(groups):
            continue
        opened = [*collapse_addresses(_rule_ranges(here))]
        shut |= {each for each in ranges if not any(each.subnet_of(range_) for range_ in opened)}
    return tuple(each for each in ranges if each in shut)


def prefix_lists(rules: "Iterable[Rule]") -> tuple[str, ...]:
    """Return the prefix lists that rules name; the rules do not contain their addresses."""
    names = (
        each.get("PrefixListId", "") for rule in rules for each in rule.get("PrefixListIds", [])
    )
    return tuple(dict.fromkeys(names))


def _has_port(rule: "Rule", port: int) -> bool:
    if rule.get("IpProtocol") == _ALL:
        return True
    return rule.get("FromPort", -1) <= port <= rule.get("ToPort", -1)


def _rule_ranges(rules: "Iterable[Rule]") -> Iterator[IPv4Network]:
    for rule in rules:
        for each in rule.get("IpRanges", []):
            if cidr := each.get("CidrIp"):
                yield IPv4Network(cidr, strict=False)
