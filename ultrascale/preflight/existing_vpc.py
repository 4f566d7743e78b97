"""Existing VPC: the cluster file's facts about it, compared with the account.

Sources:
    https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html
    https://docs.aws.amazon.com/vpc/latest/userguide/vpc-sharing-share-subnet-working-with.html
    https://docs.aws.amazon.com/vpc/latest/privatelink/interface-endpoints.html
    https://docs.aws.amazon.com/vpc/latest/privatelink/gateway-endpoints.html
"""

from collections.abc import Iterator, Sequence
from ipaddress import IPv4Network
from typing import TYPE_CHECKING

from ultrascale.account.vpcs import ACTIONS, EndpointRecord, SubnetRecord, VpcRecord, read_vpc
from ultrascale.errors import UnansweredError
from ultrascale.findings import Finding, Issue, finding, unknown
from ultrascale.plan.model import (
    EndpointPlan,
    ExistingVpcPlan,
    NetworkPlan,
    PlannedPart,
    SubnetPlan,
)
from ultrascale.plan.network.assignment import Room
from ultrascale.plan.network.existing_addresses import room_of
from ultrascale.plan.network.vpc import zones_without_room
from ultrascale.preflight.model import Check, Context
from ultrascale.preflight.network import closed_ranges, prefix_lists

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import SecurityGroupTypeDef as Group

_NAME = "existing-vpc"
_DHCP, _GROUPS = "ec2:DescribeDhcpOptions", "ec2:DescribeSecurityGroups"
_HTTPS = (443, 443)
_AMAZON_DNS = "AmazonProvidedDNS"
# Controllers of other clusters find subnets by these tags.
# Sources: https://docs.aws.amazon.com/eks/latest/userguide/cni-subnet-selection.html
# https://karpenter.sh/docs/concepts/nodeclasses/#specsubnetselectorterms
_CNI_TAG, _CNI_CLUSTER_TAG = "kubernetes.io/role/cni", "cni.networking.k8s.aws/cluster/"
_KARPENTER_TAG = "karpenter.sh/discovery"
_WAYS_OUT = ("nat-gateway", "transit-gateway")


def _vpc_findings(context: Context) -> Iterator[Finding]:
    existing = context.plan.network.existing
    if existing is None:
        return
    record = read_vpc(context.account, existing.vpc_id, cluster=context.plan.name)
    if record is None:
        fix = "have its owner share subnets of it by AWS RAM, or name the VPC of this account"
        wrong = f"account {context.account.id} sees no such VPC in {context.plan.region}"
        issue = Issue(state="fail", evidence=wrong, fix=fix)
        yield finding(_NAME, existing.vpc_id, [issue], fine="")
        return
    issues = [*_vpc_issues(context, existing, record)]
    ranges = ", ".join(map(str, record.cidrs))
    yield finding(_NAME, record.id, issues, fine=f"of account {record.owner}, {ranges}")
    yield from _subnets(context, record)
    yield _fleet_finding(context, record)
    yield from _endpoints(context, record)


def _vpc_issues(context: Context, existing: ExistingVpcPlan, record: VpcRecord) -> Iterator[Issue]:
    stated = existing.owner or context.account.id
    if record.owner != stated:
        yield Issue(
            state="fail",
            evidence=f"belongs to account {record.owner}, the file says {stated}",
            fix=f'write owner: "{record.owner}" into network.vpc'
            if record.shared
            else "take owner out of network.vpc",
        )
    network = context.plan.network
    told = {network.vpc_cidr, *network.secondary_cidrs}
    for cidr in record.cidrs:
        if cidr not in told:
            wrong = f"its range {cidr} is not in the file"
            yield Issue(state="fail", evidence=wrong, fix="add it to network.vpc.cidrs")
    for cidr in sorted(told - {*record.cidrs}):
        wrong = f"{cidr} of the file is no range of it"
        yield Issue(state="fail", evidence=wrong, fix="take it out of network.vpc.cidrs")
    for attribute, on in (
        ("enableDnsSupport", record.dns_support),
        ("enableDnsHostnames", record.dns_hostnames),
    ):
        if not on:
            yield Issue(
                state="fail",
                evidence=f"{attribute} is off, and nodes never register",
                fix=f"have account {record.owner} switch it on",
            )
    yield from _dhcp_issues(context, record)


def _dhcp_issues(context: Context, record: VpcRecord) -> Iterator[Issue]:
    """Yield an issue if a VPC has the user's name servers: they must resolve endpoints' names."""
    if record.dhcp_options == "default":
        servers: list[str] = []
    else:
        found = context.account.ask(
            context.account.client("ec2").describe_dhcp_options,
            DhcpOptionsIds=[record.dhcp_options],
        )
        servers = [
            value.get("Value", "")
            for options in found["DhcpOptions"]
            for option in options.get("DhcpConfigurations", ())
            if option.get("Key") == "domain-name-servers"
            for value in option.get("Values", ())
        ]
    if _AMAZON_DNS not in servers:
        asked = ", ".join(servers) or "no server"
        yield Issue(
            state="warn",
            evidence=f"nodes ask {asked} for names, not {_AMAZON_DNS}",
            fix="see that it forwards the names of AWS services and of the cluster's API server to "
            "the VPC's resolver",
        )


def _subnets(context: Context, record: VpcRecord) -> Iterator[Finding]:
    network = context.plan.network
    uses: dict[str, list[SubnetPlan]] = {}
    for subnet in network.subnets:
        uses.setdefault(subnet.id or "", []).append(subnet)
    for id, plans in uses.items():
        found = record.subnet(id)
        kinds = " and ".join(plan.kind for plan in plans)
        if found is None:
            issue = Issue(
                state="fail",
                evidence=f"{record.id} has no such subnet that account {context.account.id} sees",
                fix="correct network.subnets, or have the subnet shared by AWS RAM",
            )
            yield finding(_NAME, f"{id} ({kinds})", [issue], fine="")
            continue
        issues = [*_subnet_issues(context, plans, found)]
        fine = f"{found.free_addresses:,} addresses free, {_blocks(found)}, route {found.route}"
        yield finding(_NAME, f"{id} ({kinds})", issues, fine=fine)


def _blocks(found: SubnetRecord) -> str:
    if found.most_free_prefixes > found.free_prefixes:
        return f"{found.free_prefixes:,} to {found.most_free_prefixes:,} blocks of 16"
    return f"{found.free_prefixes:,} blocks of 16"


def _subnet_issues(
    context: Context, plans: Sequence[SubnetPlan], found: SubnetRecord
) -> Iterator[Issue]:
    plan, network = plans[0], context.plan.network
    if plan.zone not in (found.zone, found.zone_id):
        yield Issue(
            state="fail",
            evidence=f"lies in {found.zone} ({found.zone_id}), the file says {plan.zone}",
            fix="write its zone",
        )
    if plan.cidr != found.cidr:
        wrong = f"is {found.cidr}, the file says {plan.cidr}"
        yield Issue(state="fail", evidence=wrong, fix="write its range")
    room = room_of(plan)
    anew = f"`ultrascale network record {_vpc_id(network)} FILE`, then plan again"
    recorded = plan.free_addresses is not None or plan.free_prefixes is not None
    basis = "recorded" if recorded else "counted as empty"
    if found.free_addresses < room.addresses:
        wrong = f"{found.free_addresses:,} addresses are free, {room.addresses:,} {basis}"
        yield Issue(state="warn", evidence=wrong, fix=anew)
    elif found.free_prefixes < room.prefixes:
        wrong = f"{_blocks(found)} are free, {room.prefixes:,} {basis}"
        yield Issue(state="warn", evidence=wrong, fix=anew)
    if not found.reservations_known:
        yield Issue(
            state="warn",
            evidence="its CIDR reservations are not visible, so reserved parts count as free",
            fix="ask its owner for them",
        )
    if any(each.kind in ("private", "accelerated") for each in plans):
        yield from _route_issues(network, found)
        yield from _neighbour_issues(context.plan.name, found)
    if any(each.kind == "public" for each in plans):
        yield from _way_in_issues(context.plan.parts, found)


def _way_in_issues(parts: Sequence[PlannedPart], found: SubnetRecord) -> Iterator[Issue]:
    """Yield an issue if clients of a part cannot reach a public subnet."""
    if found.route == "internet-gateway":
        return
    known = found.route_table is not None
    for part in parts:
        way = part.way_in
        if way is not None and found.id in way.subnets:
            yield Issue(
                state="fail" if known else "warn",
                evidence=f"no way in for {way.clients} (route {found.route})"
                if known
                else "its route table is not visible",
                fix=f"have 0.0.0.0/0 of it go to an internet gateway, or {way.instead}",
            )


def _vpc_id(network: NetworkPlan) -> str:
    assert network.existing is not None
    return network.existing.vpc_id


def _route_issues(network: NetworkPlan, found: SubnetRecord) -> Iterator[Issue]:
    egress = network.egress
    if found.route_table is None:
        yield Issue(
            state="warn",
            evidence="its route table is not visible",
            fix=f"ask its owner whether 0.0.0.0/0 fits egress: {egress}",
        )
    elif egress == "none" and found.route != "none":
        yield Issue(
            state="warn",
            evidence=f"0.0.0.0/0 goes to a target ({found.route}), the file says egress: none",
            fix="have the route taken out if nothing may leave; the cluster does not use it",
        )
    elif egress != "none" and found.route == "other":
        yield Issue(
            state="warn",
            evidence="0.0.0.0/0 goes to a target that preflight does not know",
            fix="see that it leads to the internet",
        )
    elif egress != "none" and found.route not in _WAYS_OUT:
        yield Issue(
            state="fail",
            evidence=f"no way out for nodes (route {found.route}), the file says egress: {egress}",
            fix="have a route to a NAT or transit gateway made, or write egress: none",
        )


def _neighbour_issues(cluster: str, found: SubnetRecord) -> Iterator[Issue]:
    """Yield an issue for tags that let another cluster's controllers use the subnet's addresses."""
    named = [key for key in found.tags if key.startswith(_CNI_CLUSTER_TAG)]
    others = [key.removeprefix(_CNI_CLUSTER_TAG) for key in named]
    if found.tags.get(_CNI_TAG) == "1" and others != [cluster]:
        yield Issue(
            state="warn",
            evidence=f"tag {_CNI_TAG}: other clusters' VPC CNI may put pods there",
            fix=f"tag it {_CNI_CLUSTER_TAG}{cluster}, or take the tag away",
        )
    discovered = found.tags.get(_KARPENTER_TAG)
    if discovered not in (None, cluster):
        yield Issue(
            state="warn",
            evidence=f"tag {_KARPENTER_TAG}={discovered}: that cluster's Karpenter launches nodes "
            "there",
            fix="count them in what is free, or take the tag away",
        )


def _fleet_finding(context: Context, record: VpcRecord) -> Finding:
    """Return the finding whether the fleet at full size fits into the free addresses."""
    found = [
        each
        for id in dict.fromkeys(subnet.id or "" for subnet in context.plan.network.subnets)
        if (each := record.subnet(id)) is not None
    ]
    certain = zones_without_room(
        context.plan.network, context.plan.all_pools, {each.id: _room(each) for each in found}
    )
    hopeful = {each.id: _room(each, most=True) for each in found}
    hopeless = (
        zones_without_room(context.plan.network, context.plan.all_pools, hopeful) if certain else ()
    )
    if not certain:
        evidence = "every node, pod and interface finds its addresses at full size"
        return Finding(check=_NAME, subject="fleet", state="pass", evidence=evidence)
    fix = (
        f"`ultrascale network record {record.id} FILE` and plan again: `plan` names the zone, the "
        "sum, and a subnet that would do"
    )
    if hopeless:
        evidence = f"too few free addresses at full size in {', '.join(hopeless)}"
        return Finding(check=_NAME, subject="fleet", state="fail", evidence=evidence, fix=fix)
    return Finding(
        check=_NAME,
        subject="fleet",
        state="warn",
        evidence=f"too few free addresses are certain in {', '.join(certain)}: interfaces of other "
        "accounts are not visible",
        fix=f"run it with credentials of account {record.owner}",
    )


def _room(subnet: SubnetRecord, *, most: bool = False) -> Room:
    prefixes = subnet.most_free_prefixes if most else subnet.free_prefixes
    return Room(id=subnet.id, addresses=subnet.free_addresses, prefixes=prefixes)


def _endpoints(context: Context, record: VpcRecord) -> Iterator[Finding]:
    for plan in context.plan.network.endpoints:
        subject = f"endpoint {plan.service}"
        found = record.endpoint(plan.service)
        if plan.state == "present":
            try:
                issues = [*_present_issues(context, record, plan, found)]
            except UnansweredError as error:
                yield unknown(_NAME, subject, error)
                continue
            fine = f"{found.id} is available" if found else ""
            yield finding(_NAME, subject, issues, fine=fine)
        elif plan.state == "made" and found is not None and not found.ours:
            if not found.private_dns and found.kind == "interface":
                continue
            issue = Issue(
                state="fail",
                evidence=f"{found.id} is there: a VPC takes one endpoint with private DNS of a "
                "service",
                fix="list it in network.endpoints.present, and make none",
            )
            yield finding(_NAME, subject, [issue], fine="")


def _present_issues(
    context: Context, record: VpcRecord, plan: EndpointPlan, found: EndpointRecord | None
) -> Iterator[Issue]:
    if found is None:
        yield Issue(
            # A participant may not see the owner's endpoints, and a hub's endpoints are in another
            # VPC: their names come by private hosted zones, profiles or rules of Route 53.
            state="warn",
            evidence=f"account {context.account.id} sees no endpoint of it in {record.id}",
            fix=f"ask account {record.owner} for it, or see that its name leads to the endpoint of "
            "a hub from this VPC; without either, nothing that calls it works",
        )
        return
    if not found.available:
        todo = f"have account {record.owner} accept or repair it"
        yield Issue(state="fail", evidence=f"{found.id} is not available", fix=todo)
    nodes = [
        each
        for subnet in context.plan.network.subnets
        if subnet.kind in ("private", "accelerated")
        and (each := record.subnet(subnet.id or "")) is not None
    ]
    if found.kind == "gateway":
        missing = sorted(
            {each.route_table for each in nodes if each.route_table} - {*found.route_tables}
        )
        if missing:
            wrong = f"{found.id} is not in route tables {', '.join(missing)} of nodes"
            yield Issue(state="fail", evidence=wrong, fix="have it added to them")
        return
    if not found.private_dns:
        yield Issue(
            state="warn",
            evidence=f"{found.id} has no private DNS names",
            fix="switch them on, or see that a private hosted zone of this VPC answers for "
            f"{plan.service}",
        )
    yield from _group_issues(context, found, [node.cidr for node in nodes])


def _group_issues(
    context: Context, found: EndpointRecord, ranges: Sequence[IPv4Network]
) -> Iterator[Issue]:
    if not found.groups:
        return
    # EC2's filter ignores a group of another account; a request by its id fails.
    groups: Sequence[Group] = context.account.ask_all(
        context.account.client("ec2").describe_security_groups,
        lambda page: page["SecurityGroups"],
        Filters=[{"Name": "group-id", "Values": sorted(found.groups)}],
    )
    rules = [rule for group in groups for rule in group.get("IpPermissions", ())]
    if len(groups) < len(found.groups) or prefix_lists(rules):
        return
    shut = closed_ranges(rules, ports=_HTTPS, ranges=[*dict.fromkeys(ranges)])
    if shut:
        yield Issue(
            state="fail",
            evidence=f"{', '.join(found.groups)} of {found.id} lets no HTTPS in from "
            f"{', '.join(map(str, shut))}",
            fix="have TCP 443 opened to these ranges",
        )


EXISTING_VPC = Check(
    name=_NAME,
    title="a VPC that exists is as the file says, and has room",
    actions=(*ACTIONS, _DHCP, _GROUPS),
    run=_vpc_findings,
)
