"""Rules of a network: of its endpoints, and of a VPC and subnets that exist already."""

from collections.abc import Iterator, Sequence

from ultrascale.catalog import eks, regions, vpc
from ultrascale.catalog import endpoints as catalog
from ultrascale.config._errors import Mistakes, refuse
from ultrascale.config._rules import rule
from ultrascale.config.identity import Identity
from ultrascale.config.network import Network, is_shared, unusable, wrong_size
from ultrascale.config.vpc import Subnet, SubnetUse, Vpc

_PRESENT, _CREATE, _GROUP = "endpoints.present", "endpoints.create", "endpoints.security_group"


@rule
def endpoints_of_our_vpc_are_ours(network: Network) -> Mistakes:
    if network.vpc is not None:
        return
    if network.endpoints.present:
        wrong = "a VPC that we make has no endpoints yet"
        yield refuse(_PRESENT, wrong, "leave it out", got="")
    if network.endpoints.security_group is not None:
        wrong = "a VPC that we make has no groups yet"
        yield refuse(_GROUP, wrong, "leave it out: we make one")


@rule
def endpoints_have_short_names(network: Network) -> Mistakes:
    settings = network.endpoints
    created = settings.create if isinstance(settings.create, tuple) else ()
    for key, services in ((_PRESENT, settings.present), (_CREATE, created)):
        for number, name in enumerate(services):
            if (short := catalog.short_name(name)) != name:
                todo = f"write {short}"
                yield refuse(f"{key}.{number}", "the long name of an endpoint", todo)


@rule
def participants_make_no_endpoints(network: Network, identity: Identity) -> Mistakes:
    # Source: https://docs.aws.amazon.com/vpc/latest/userguide/vpc-sharing.html
    wanted = network.endpoints.create
    if is_shared(network, identity.account) and wanted not in {None, "none", ()}:
        wrong = "only the owner of a shared VPC can make endpoints in it"
        todo = "write none; `ultrascale network needs` lists what the owner has to make"
        yield refuse(_CREATE, wrong, todo)


@rule
def endpoints_are_made_once(network: Network) -> Mistakes:
    """Yield an endpoint that would be the VPC's second of its service, or a route of others."""
    settings = network.endpoints
    for number, name in enumerate(settings.create if isinstance(settings.create, tuple) else ()):
        key = f"{_CREATE}.{number}"
        if name in settings.present:
            wrong = "also in present, but a VPC has one private-DNS endpoint per service"
            yield refuse(key, wrong, "keep create or present")
        elif network.vpc is not None and catalog.kind_of(name) == "gateway":
            wrong = "a gateway endpoint changes the route tables, which are the VPC owner's"
            yield refuse(key, wrong, "ask the VPC's owner to make it, and add it to present")


@rule
def group_has_endpoints(network: Network) -> Mistakes:
    settings, exists = network.endpoints, network.vpc is not None
    if exists and settings.security_group is not None and settings.create in {None, "none", ()}:
        wrong = "security_group is for endpoints of create, and create makes none"
        todo = "leave it out; preflight reads the groups of existing endpoints"
        yield refuse(_GROUP, wrong, todo)


_SUBNETS = "subnets"


@rule
def ranges_of_the_vpc_are_legal(stated: Vpc) -> Mistakes:
    if not stated.cidrs:
        yield refuse("cidrs", "no range", "write every IPv4 range of the VPC, the primary first")
    if len(stated.cidrs) > vpc.MOST_IPV4_RANGES:
        wrong = f"more ranges than the {vpc.MOST_IPV4_RANGES} that a VPC takes"
        yield refuse("cidrs", wrong, "write those of the VPC", got=str(len(stated.cidrs)))
    for number, block in enumerate(stated.cidrs):
        key = f"cidrs.{number}"
        yield from wrong_size(key, block)
        yield from unusable(key, block)
        for other in stated.cidrs[:number]:
            if block.overlaps(other):
                yield refuse(key, f"overlaps {other} of the same VPC", "write each range once")
                break


@rule
def subnets_are_of_the_vpc(network: Network) -> Mistakes:
    for number, subnet in enumerate(network.subnets if network.vpc else ()):
        key, block = f"{_SUBNETS}.{number}.cidr", subnet.cidr
        if not any(block.subnet_of(range_) for range_ in network.ranges):
            ranges = ", ".join(map(str, network.ranges)) or "none"
            wrong = f"in no range of network.vpc.cidrs ({ranges})"
            yield refuse(key, wrong, "write the subnet's range, or add the range of the VPC")
        yield from wrong_size(key, block)


@rule
def subnets_are_apart(network: Network) -> Mistakes:
    for number, subnet in enumerate(network.subnets):
        earlier = network.subnets[:number]
        if twin := _number_of(other.id == subnet.id for other in earlier):
            wrong = f"network.{_SUBNETS}[{twin - 1}] has this id already"
            todo = "write each subnet once, with all of its uses in use"
            yield refuse(f"{_SUBNETS}.{number}.id", wrong, todo)
        elif twin := _number_of(other.cidr.overlaps(subnet.cidr) for other in earlier):
            wrong = f"overlaps network.{_SUBNETS}[{twin - 1}], {earlier[twin - 1].cidr}"
            todo = "write the range of each subnet as the account shows it"
            yield refuse(f"{_SUBNETS}.{number}.cidr", wrong, todo)


def _number_of(values: Iterator[bool]) -> int:
    """Return the number, from 1, of the first true value; 0 without one."""
    return next((number for number, value in enumerate(values, 1) if value), 0)


@rule
def subnets_lie_in_the_region(network: Network, identity: Identity) -> Mistakes:
    region = identity.region
    for number, subnet in enumerate(network.subnets):
        zone = subnet.zone
        why = regions.why_no_zone(zone, region)
        only_nodes = zone in regions.ZONES_WITHOUT_CONTROL_PLANE and (
            "control-plane" not in subnet.use
        )
        if why is not None and not only_nodes:
            yield refuse(f"{_SUBNETS}.{number}.zone", *why)
    if len({regions.is_zone_id(subnet.zone) for subnet in network.subnets}) > 1:
        wrong = "zone names and zone ids mixed: two of them may be the same zone"
        yield refuse(_SUBNETS, wrong, "write names alone, or ids alone", got="")


@rule
def subnets_have_every_use(network: Network) -> Mistakes:
    """Yield uses that a cluster needs and no subnet has."""
    if network.vpc is None or _SUBNETS not in network.model_fields_set:
        return
    # Source: https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html
    if len(_zones_of(network.subnets, "control-plane")) < 2:
        wrong = "the control plane needs subnets in two zones"
        todo = "add use: control-plane to a subnet in each of two zones"
        yield refuse(_SUBNETS, wrong, todo, got="")
    if not _zones_of(network.subnets, "nodes"):
        wrong = "no subnet for nodes"
        yield refuse(_SUBNETS, wrong, "add use: nodes to a subnet", got="")


@rule
def recorded_facts_fit_the_subnet(subnet: Subnet) -> Mistakes:
    """Yield recorded numbers that are more than an empty subnet has."""
    addresses, blocks = vpc.free_addresses(subnet.cidr), vpc.free_prefixes(subnet.cidr)
    todo = "record it anew: `ultrascale network record`"
    if subnet.free_addresses is not None and subnet.free_addresses > addresses:
        wrong = f"more than the {addresses:,} addresses that {subnet.cidr} gives"
        yield refuse("free_addresses", wrong, todo)
    if subnet.free_prefixes is not None and subnet.free_prefixes > blocks:
        wrong = f"more than the {blocks:,} blocks of 16 addresses that {subnet.cidr} gives"
        yield refuse("free_prefixes", wrong, todo)
    elif subnet.free_addresses is not None and subnet.free_prefixes is not None:
        most = subnet.free_addresses // eks.ADDRESSES_PER_PREFIX
        if subnet.free_prefixes > most:
            wrong = f"more blocks of 16 than {subnet.free_addresses:,} free addresses make"
            yield refuse("free_prefixes", wrong, todo)


@rule
def owner_is_told_where_it_is_another(network: Network, identity: Identity) -> Mistakes:
    if network.vpc is not None and network.vpc.owner == identity.account is not None:
        wrong = "the cluster's own account, so the VPC is not shared"
        yield refuse("vpc.owner", wrong, "leave it out")


def subnets_are_sound(network: Network) -> bool:
    """Return whether the subnets of ``network`` pass their own rules."""
    rules = (subnets_are_of_the_vpc, subnets_are_apart, subnets_have_every_use)
    return not any(
        mistake
        for mistakes in (
            *(judge(network) for judge in rules),
            *(recorded_facts_fit_the_subnet(subnet) for subnet in network.subnets),
        )
        for mistake in mistakes
    )


@rule
def recorded_routes_are_a_way_out(network: Network) -> Mistakes:
    """Yield subnets whose recorded route does not serve their use, where egress counts on it.

    Nodes get no public addresses, and without one an internet gateway lets no traffic out. Load
    balancers of the internet answer by an internet gateway alone.

    Source: https://docs.aws.amazon.com/elasticloadbalancing/latest/application/application-load-balancers.html
    """
    if network.vpc is None or network.egress == "none":
        return
    for number, subnet in enumerate(network.subnets):
        of_nodes = {"nodes", "accelerated"} & {*subnet.use}
        if of_nodes and subnet.route in ("none", "internet-gateway"):
            wrong = f"no way out for nodes, and network.egress is {network.egress}"
            todo = "use a subnet with a route, or write egress: none"
            yield refuse(f"{_SUBNETS}.{number}.route", wrong, todo)
        elif "public" in subnet.use and subnet.route not in (None, "internet-gateway", "other"):
            wrong = "no internet gateway, and use has public: clients get no answer through it"
            todo = "route 0.0.0.0/0 of its table to an internet gateway, or take public out of use"
            yield refuse(f"{_SUBNETS}.{number}.route", wrong, todo)


def _zones_of(subnets: Sequence[Subnet], use: SubnetUse) -> set[str]:
    return {subnet.zone for subnet in subnets if use in subnet.use}
