"""`network` and `agreed_limits`: address ranges, zones and limits of the VPC."""

from ipaddress import IPv4Network
from typing import Annotated, Literal

from pydantic import Field, Tag

from ultrascale.catalog import integer_bounds, quotas, regions, vpc
from ultrascale.config._base import Model, Section, chosen_by_form
from ultrascale.config._errors import Mistakes, note, refuse
from ultrascale.config._rules import rule
from ultrascale.config._values import Distinct, Network4, in_schema
from ultrascale.config.identity import Identity
from ultrascale.config.vpc import Endpoints, Subnet, SubnetUse, Vpc

# The mask of the blocks that ``{count, from}`` takes.
_BLOCK_MASK = vpc.LARGEST_RANGE_MASK
_MOST_SECONDARY = vpc.MOST_IPV4_RANGES - 1
_NODES = frozenset[SubnetUse](("nodes", "accelerated"))


class PodBlocks(Model):
    """Consecutive /16 blocks, the largest that a VPC takes, of one larger range."""

    count: Annotated[int, Field(ge=1)]
    """Number of /16 blocks."""

    from_: Network4 = Field(alias="from")
    """Range that the blocks are taken from, such as `100.64.0.0/10`."""


PodCidrs = Annotated[
    Annotated[tuple[Network4, ...], Tag("plain")] | Annotated[PodBlocks, Tag("mapping")],
    chosen_by_form(PodBlocks),
]


class Network(Section):
    """The VPC: one of ours by ranges and zones, or one that exists by ids."""

    vpc_cidr: Network4 | None = None
    """Primary IPv4 range of a VPC of ours, /16 to /28.

    Default: none; required without `vpc`.
    """

    pod_cidrs: PodCidrs = ()
    """Secondary ranges for accelerated nodes and their pods: a list, or that many /16 blocks of a
    larger range.

    Default: none.
    """

    zones: Annotated[Distinct[str], in_schema(minItems=2)] = ()
    """Zones that get subnets, at least two: all names (`us-west-2b`) or all zone ids (`usw2-az4`).

    Default: none; required without `vpc`.
    """

    vpc: Vpc | None = None
    """A VPC that exists, instead of `vpc_cidr`, `pod_cidrs` and `zones`. Nothing in it that is not
    ours is made, changed or deleted.

    Default: a VPC of ours.
    """

    subnets: tuple[Subnet, ...] = ()
    """Subnets of `vpc` that the cluster uses.

    Default: none; required with `vpc`.
    """

    egress: Literal["nat", "transit-gateway", "none"] = "nat"
    """Way out to the internet: a NAT gateway, a transit gateway whose routes are there, or none:
    then images come from `images.mirror` and services from endpoints.

    Default: a NAT gateway in each zone; required with `vpc`, where no gateway is made.
    """

    endpoints: Endpoints = Field(default_factory=Endpoints)
    """Endpoints of AWS services in the VPC."""

    connected_cidrs: Distinct[Network4] = ()
    """Other ranges that are routed from the VPC; `kubernetes.service_cidr` stays clear of them.
    Ranges of the VPC may lie inside.

    Default: none.
    """

    flow_logs: Literal["cloudwatch", "s3", "none"] = "cloudwatch"
    """Destination of the VPC's flow logs: a log group, a bucket of ours, or nothing. A VPC that
    exists gets none.
    """

    @property
    def pod_blocks(self) -> tuple[IPv4Network, ...]:
        """The secondary ranges of a VPC of ours, for accelerated nodes and pods."""
        return blocks(self.pod_cidrs)

    @property
    def ranges(self) -> tuple[IPv4Network, ...]:
        """All IPv4 ranges of the VPC, the primary one first."""
        if self.vpc is not None:
            return self.vpc.cidrs
        return () if self.vpc_cidr is None else (self.vpc_cidr, *self.pod_blocks)

    @property
    def zone_names(self) -> tuple[str, ...]:
        """The zones that have subnets for nodes, in file order: names or zone ids."""
        if self.vpc is None:
            return self.zones
        return tuple(
            dict.fromkeys(subnet.zone for subnet in self.subnets if _NODES & {*subnet.use})
        )

    def why_no_subnet(self) -> tuple[str, str]:
        """Return what is wrong with a zone outside `zone_names`, and what to do."""
        wrong = "not one of network.zones" if self.vpc is None else "no zone of network.subnets"
        return wrong, f"use one of {', '.join(self.zone_names)}, or add it there"

    def zones_for(self, *, accelerated: bool) -> tuple[str, ...]:
        """Return the zones that have subnets for nodes with accelerators, or without.

        In a VPC without subnets for accelerated nodes alone, both have the same zones.
        """
        if self.vpc is None:
            return self.zones
        uses = {use for subnet in self.subnets for use in subnet.use}
        use = "accelerated" if accelerated and "accelerated" in uses else "nodes"
        return tuple(dict.fromkeys(subnet.zone for subnet in self.subnets if use in subnet.use))


def is_shared(network: Network, account: str | None) -> bool:
    """Return whether the VPC of ``network`` belongs to another account than ``account``.

    A stated owner counts as another account where ``account`` is not known.
    """
    owner = None if network.vpc is None else network.vpc.owner
    return owner is not None and owner != account


def blocks(pod_cidrs: tuple[IPv4Network, ...] | PodBlocks) -> tuple[IPv4Network, ...]:
    """Return the ranges of ``pod_cidrs``.

    A `PodBlocks` that asks for more blocks than its range has gives the existing ones.
    """
    if not isinstance(pod_cidrs, PodBlocks):
        return pod_cidrs
    if pod_cidrs.from_.prefixlen > vpc.LARGEST_RANGE_MASK:
        return ()
    subnets = pod_cidrs.from_.subnets(new_prefix=vpc.LARGEST_RANGE_MASK)
    return tuple(block for _, block in zip(range(pod_cidrs.count), subnets, strict=False))


class AgreedLimits(Section):
    """Limits that AWS has granted above the published ones."""

    nau_per_vpc: Annotated[int, Field(ge=1, le=integer_bounds.ADDRESS_UNITS)] | None = None
    """Network Address Usage units of one VPC. Default: the published ones."""

    pods: Annotated[int, Field(ge=1, le=integer_bounds.PODS)] | None = None
    """Pods of the cluster, DaemonSets' among them. Default: the most that anybody published."""

    database_gb: Annotated[int, Field(ge=1, le=integer_bounds.DATABASE_GB)] | None = None
    """Size of the control plane's database, in GB. Default: that of the tier."""

    reference: Annotated[str, Field(min_length=1)]
    """The case or agreement that grants them."""


@rule
def something_is_agreed(agreed: AgreedLimits) -> Mistakes:
    if agreed.nau_per_vpc is agreed.pods is agreed.database_gb is None:
        wrong = "a reference, and no limit that it grants"
        yield refuse("", wrong, "write nau_per_vpc, pods or database_gb beside it")


@rule
def network_is_ours_or_exists(network: Network) -> Mistakes:
    """Yield missing keys, and keys of a VPC of ours beside an existing VPC."""
    stated = network.model_fields_set
    if network.vpc is None:
        for key in ("vpc_cidr", "zones"):
            if key not in stated or getattr(network, key) is None:
                yield refuse(key, "missing", "add it, or name an existing VPC in vpc", got="")
        if network.subnets:
            todo = "name the VPC in vpc, or leave subnets out: we make those of a new VPC"
            yield refuse("subnets", "subnets without their VPC", todo, got="")
        return
    for key in ("subnets", "egress"):
        if key not in stated or getattr(network, key) is None:
            yield refuse(key, "missing", "add it: an existing VPC needs it", got="")
    for key in ("vpc_cidr", "pod_cidrs", "zones"):
        if key in stated:
            yield refuse(key, "only for a VPC that we make", "leave it out", got="")
    if "flow_logs" in stated and network.flow_logs != "none":
        wrong = "vpc is not ours: its owner makes its flow logs"
        yield refuse("flow_logs", wrong, "leave it out, or write none")


@rule
def way_out_can_be_made(network: Network) -> Mistakes:
    if network.vpc is None and network.egress == "transit-gateway":
        wrong = "a VPC that we make has no transit gateway"
        yield refuse("egress", wrong, "write nat or none, or name an existing VPC in vpc")


@rule
def connected_ranges_are_apart(network: Network) -> Mistakes:
    """Yield connected ranges that the VPC cannot reach: its local route takes their place."""
    for number, other in enumerate(network.connected_cidrs):
        for block in network.ranges:
            inside = network.vpc is not None and block != other and block.subnet_of(other)
            if block.overlaps(other) and not inside:
                wrong = f"overlaps {block} of the VPC"
                todo = "name only the ranges of other networks"
                yield refuse(f"connected_cidrs.{number}", wrong, todo)
                break


@rule
def zones_are_of_the_region(network: Network, identity: Identity) -> Mistakes:
    for number, zone in enumerate(network.zones):
        if (why := regions.why_no_zone(zone, identity.region)) is not None:
            yield refuse(f"zones.{number}", *why)


@rule
def network_has_two_zones(network: Network) -> Mistakes:
    # Source: https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html
    if network.vpc is None and "zones" in network.model_fields_set and len(network.zones) < 2:
        yield refuse("zones", "EKS needs subnets in two zones", "add a second zone")


@rule
def zones_are_named_one_way(network: Network) -> Mistakes:
    # An account maps zone ids to names of its own: both may be one zone.
    if len({regions.is_zone_id(zone) for zone in network.zones}) > 1:
        wrong = "zone names and zone ids mixed: two of them may be the same zone"
        yield refuse("zones", wrong, "write names alone, or ids alone")


@rule
def vpc_range_has_a_legal_size(network: Network) -> Mistakes:
    if network.vpc_cidr is not None:
        yield from wrong_size("vpc_cidr", network.vpc_cidr)


@rule
def ranges_are_usable(network: Network) -> Mistakes:
    if network.vpc_cidr is not None:
        yield from unusable("vpc_cidr", network.vpc_cidr)
    if isinstance(network.pod_cidrs, PodBlocks):
        for block in network.pod_blocks:
            if vpc.unusable(block) is not None:
                yield from unusable("pod_cidrs.from", block, got=block)
                return
        return
    for number, block in enumerate(network.pod_cidrs):
        yield from unusable(f"pod_cidrs.{number}", block)


@rule
def pod_ranges_exist(network: Network) -> Mistakes:
    pod_cidrs = network.pod_cidrs
    if not isinstance(pod_cidrs, PodBlocks):
        for number, block in enumerate(pod_cidrs):
            yield from wrong_size(f"pod_cidrs.{number}", block)
    elif pod_cidrs.from_.prefixlen > _BLOCK_MASK:
        wrong = f"smaller than one /{_BLOCK_MASK} block"
        yield refuse("pod_cidrs.from", wrong, "name a larger range, such as 100.64.0.0/10")
    elif pod_cidrs.count > (most := 2 ** (_BLOCK_MASK - pod_cidrs.from_.prefixlen)):
        wrong = f"more /{_BLOCK_MASK} blocks than {pod_cidrs.from_} has"
        yield refuse("pod_cidrs.count", wrong, f"write at most {most}, or name a larger range")


@rule
def pod_ranges_are_apart(network: Network) -> Mistakes:
    if len(network.pod_blocks) > _MOST_SECONDARY:
        return  # has a mistake of its own
    listed = not isinstance(network.pod_cidrs, PodBlocks)
    seen = [("network.vpc_cidr", network.vpc_cidr)] if network.vpc_cidr else []
    for number, block in enumerate(network.pod_blocks):
        key = f"pod_cidrs.{number}" if listed else "pod_cidrs.from"
        for name, other in seen:
            if block.overlaps(other):
                got = None if listed else str(block)
                yield refuse(key, f"overlaps {name} {other}", "choose a free range", got=got)
                if not listed:
                    return
                break
        if listed:
            seen.append((f"network.pod_cidrs[{number}]", block))


@rule
def ranges_are_associated(network: Network) -> Mistakes:
    """Yield secondary ranges that EC2 does not add to a VPC with the ranges before them."""
    listed = not isinstance(network.pod_cidrs, PodBlocks)
    primary, blocks = network.vpc_cidr, network.pod_blocks
    if primary is None:
        return
    for number, block in enumerate(blocks if len(blocks) <= _MOST_SECONDARY else ()):
        others = blocks[:number]
        if any(block.overlaps(other) for other in (primary, *others)):
            continue  # has a mistake of its own
        if not vpc.is_associated(block, primary=primary, others=others):
            key = f"pod_cidrs.{number}" if listed else "pod_cidrs.from"
            wrong = f"a range that EC2 does not add to a VPC of {primary}"
            private = [f", or of {range_}" for range_ in vpc.PRIVATE if primary.overlaps(range_)]
            todo = f"use part of 100.64.0.0/10{''.join(private)}"
            yield refuse(key, wrong, todo, got=None if listed else str(block))
            if not listed:
                return


@rule
def ranges_are_no_more_than_a_vpc_has(network: Network) -> Mistakes:
    count, most = len(network.pod_blocks), _MOST_SECONDARY
    if count > most:
        key = "pod_cidrs.count" if isinstance(network.pod_cidrs, PodBlocks) else "pod_cidrs"
        wrong = f"more secondary ranges than the {most} that a VPC takes beside its first"
        yield refuse(key, wrong, "write fewer and larger ones", got=str(count))


def ranges_are_sound(network: Network) -> bool:
    """Return whether the ranges of ``network`` pass their own rules."""
    rules = (
        vpc_range_has_a_legal_size,
        ranges_are_usable,
        pod_ranges_exist,
        pod_ranges_are_apart,
        ranges_are_associated,
        ranges_are_no_more_than_a_vpc_has,
    )
    return not any(mistake for judge in rules for mistake in judge(network))


def unusable(key: str, block: IPv4Network, got: IPv4Network | None = None) -> Mistakes:
    """Yield the range ``block`` where no VPC takes it; ``got`` where the key holds another."""
    special = vpc.unusable(block)
    if special is not None:
        wrong = f"a range of {special.use}: no VPC takes it"
        todo = f"use a range of {', '.join(str(r) for r in vpc.PRIVATE)}"
        yield refuse(key, wrong, todo, got=None if got is None else str(got))


def wrong_size(key: str, block: IPv4Network) -> Mistakes:
    """Yield the range ``block`` where no VPC and no subnet has its size."""
    largest, smallest = vpc.LARGEST_RANGE_MASK, vpc.SMALLEST_RANGE_MASK
    if not largest <= block.prefixlen <= smallest:
        todo = f"use a mask from /{largest} to /{smallest}"
        yield refuse(key, "not a size that a VPC takes", todo)


@rule(severity="warning")
def agreed_already(agreed: AgreedLimits) -> Mistakes:
    most = quotas.quota("network-address-usage").most
    stated = agreed.nau_per_vpc
    if most is not None and stated is not None and stated <= most:
        text = (
            f"AWS publishes that it grants {most:,}, so this "
            "adds nothing; leave it out, or write the agreed number"
        )
        yield note("nau_per_vpc", text)
