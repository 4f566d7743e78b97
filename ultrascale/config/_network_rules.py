"""What `network` and `kubernetes` must be to each other and to the Region."""

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Network

from ultrascale.catalog import eks, regions, vpc
from ultrascale.catalog.addons import ADDONS
from ultrascale.config._errors import Mistake, near, refuse
from ultrascale.config.hyperpod import TaskGovernance
from ultrascale.config.network import PodBlocks, blocks

Mistakes = Iterator[Mistake]
PodCidrs = tuple[IPv4Network, ...] | PodBlocks

# The mask of the blocks that ``{count, from}`` takes.
_BLOCK_MASK = vpc.LARGEST_RANGE_MASK
_EVERYONE = IPv4Network("0.0.0.0/0")


def zones_are_of_the_region(zones: tuple[str, ...], cluster_region: str) -> Mistakes:
    for number, zone in enumerate(zones):
        if not regions.zone_in_region(zone, cluster_region):
            todo = f"write its name, such as {cluster_region}a, or its zone id"
            yield refuse(f"zones.{number}", f"not a zone of {cluster_region}", todo)


def network_has_two_zones(zones: tuple[str, ...]) -> Mistakes:
    # Source: https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html
    if len(zones) < 2:
        yield refuse("zones", "EKS needs subnets in two zones", "add a second zone")


def zones_are_named_one_way(zones: tuple[str, ...]) -> Mistakes:
    # Which name an account gives to a zone id is the account's own: both may be one zone.
    if len({regions.is_zone_id(zone) for zone in zones}) > 1:
        wrong = "zone names and zone ids mixed, so that two of them may be one zone"
        yield refuse("zones", wrong, "write names alone, or ids alone")


def vpc_range_has_a_legal_size(vpc_cidr: IPv4Network) -> Mistakes:
    yield from _size("vpc_cidr", vpc_cidr)


def pod_ranges_exist(pod_cidrs: PodCidrs) -> Mistakes:
    if not isinstance(pod_cidrs, PodBlocks):
        for number, block in enumerate(pod_cidrs):
            yield from _size(f"pod_cidrs.{number}", block)
    elif pod_cidrs.from_.prefixlen > _BLOCK_MASK:
        wrong = f"smaller than one /{_BLOCK_MASK} block"
        yield refuse("pod_cidrs.from", wrong, "name a larger range, such as 100.64.0.0/10")
    elif pod_cidrs.count > (most := 2 ** (_BLOCK_MASK - pod_cidrs.from_.prefixlen)):
        wrong = f"more /{_BLOCK_MASK} blocks than {pod_cidrs.from_} has"
        yield refuse("pod_cidrs.count", wrong, f"write at most {most}, or name a larger range")


def pod_ranges_are_apart(vpc_cidr: IPv4Network, pod_cidrs: PodCidrs) -> Mistakes:
    listed = not isinstance(pod_cidrs, PodBlocks)
    seen = [("network.vpc_cidr", vpc_cidr)]
    for number, block in enumerate(blocks(pod_cidrs)):
        key = f"pod_cidrs.{number}" if listed else "pod_cidrs.from"
        for name, other in seen:
            if block.overlaps(other):
                got = None if listed else str(block)
                yield refuse(key, f"overlaps {name} {other}", "choose a free range", got=got)
                if not listed:
                    return
                break
        if listed:
            seen.append((f"network.pod_cidrs.{number}", block))


def service_range_is_legal(service_cidr: IPv4Network) -> Mistakes:
    shortest, longest = eks.SERVICE_CIDR_SHORTEST_PREFIX, eks.SERVICE_CIDR_LONGEST_PREFIX
    if not shortest <= service_cidr.prefixlen <= longest:
        todo = f"use a mask from /{shortest} to /{longest}"
        yield refuse("service_cidr", "not a size that EKS takes for Services", todo)
    if not any(service_cidr.subnet_of(private) for private in eks.SERVICE_CIDR_RANGES):
        todo = f"use a range of {', '.join(str(r) for r in eks.SERVICE_CIDR_RANGES)}"
        yield refuse("service_cidr", "not a private range", todo)


def service_range_is_apart(
    service_cidr: IPv4Network,
    given: frozenset[str],
    network_vpc_cidr: IPv4Network,
    network_pod_cidrs: PodCidrs,
) -> Mistakes:
    got = None if "service_cidr" in given else f"the default {service_cidr}"
    for name, other in (
        ("network.vpc_cidr", network_vpc_cidr),
        *(("network.pod_cidrs", block) for block in blocks(network_pod_cidrs)),
    ):
        if service_cidr.overlaps(other):
            yield refuse("service_cidr", f"overlaps {name} {other}", "choose a free range", got=got)
            return


def version_is_supported(
    version: str,
    scheduling_gang_scheduler: str,
) -> Mistakes:
    if version not in eks.SUPPORTED_VERSIONS:
        todo = f"use {', '.join(eks.SUPPORTED_VERSIONS)}"
        yield refuse("version", "not a Kubernetes version this product supports", todo)
    elif scheduling_gang_scheduler == "volcano" and _later(version, eks.LATEST_VOLCANO_VERSION):
        yield refuse("version", "later than Volcano supports", f"use {eks.LATEST_VOLCANO_VERSION}")


def hyperpod_supports_version(
    version: str, hyperpod_task_governance: TaskGovernance | None, provisioners: frozenset[str]
) -> Mistakes:
    wanted = "hyperpod" in provisioners or hyperpod_task_governance is not None
    known = version in eks.SUPPORTED_VERSIONS
    if wanted and known and _later(version, eks.LATEST_HYPERPOD_VERSION):
        todo = f"use {eks.LATEST_HYPERPOD_VERSION}"
        yield refuse("version", "later than HyperPod supports", todo)


def admins_are_of_the_partition(admins: tuple[str, ...], cluster_region: str) -> Mistakes:
    partition = regions.lookup_region(cluster_region).partition
    for number, arn in enumerate(admins):
        if arn.split(":")[1] != partition:
            wrong = f"a role outside partition {partition} of {cluster_region}"
            yield refuse(f"admins.{number}", wrong, f"write arn:{partition}:iam::ACCOUNT:role/NAME")


def endpoint_can_be_reached(private: bool, public_cidrs: tuple[IPv4Network, ...]) -> Mistakes:
    if not private:
        # Through a public endpoint they would come from the NAT gateways' addresses, which no
        # range of the file names.
        wrong = "nodes and manifests reach the API server through the private endpoint"
        yield refuse("private", wrong, "set private: true")
    for number, block in enumerate(public_cidrs):
        if block == _EVERYONE:
            wrong = "opens the Kubernetes API to the whole internet"
            yield refuse(f"public_cidrs.{number}", wrong, "name the networks of your people")


def event_ttl_is_in_bounds(event_ttl: str) -> Mistakes:
    least, most = eks.EVENT_TTL_MINUTES
    if not least <= int(event_ttl.removesuffix("m")) <= most:
        yield refuse("event_ttl", "out of EKS's bounds", f"write {least}m to {most}m")


def addons_are_ours(addons: Mapping[str, str]) -> Mistakes:
    for name in addons:
        if name not in ADDONS:
            wrong = f"unknown add-on {name!r}"
            yield Mistake(("addons", name), wrong, near(name, ADDONS), got="")


def _size(key: str, block: IPv4Network) -> Mistakes:
    largest, smallest = vpc.LARGEST_RANGE_MASK, vpc.SMALLEST_RANGE_MASK
    if not largest <= block.prefixlen <= smallest:
        todo = f"use a mask from /{largest} to /{smallest}"
        yield refuse(key, "not a size that a VPC takes", todo)


def _later(version: str, latest: str) -> bool:
    return eks.SUPPORTED_VERSIONS.index(version) > eks.SUPPORTED_VERSIONS.index(latest)
