"""`kubernetes`: the EKS control plane."""

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network
from typing import Annotated, Literal

from pydantic import Field, PrivateAttr

from ultrascale.catalog import eks, regions, vpc
from ultrascale.catalog.addons import REFUSED, known_addons
from ultrascale.catalog.recorded import VersionFacts
from ultrascale.config._base import Section
from ultrascale.config._errors import Mistake, Mistakes, near, note, refuse
from ultrascale.config._parts import Every
from ultrascale.config._rules import rule
from ultrascale.config._values import (
    Distinct,
    DnsLabel,
    Network4,
    in_schema,
    matching,
    one_of,
)
from ultrascale.config.access import Access, RoleArn
from ultrascale.config.identity import Identity
from ultrascale.config.network import Network
from ultrascale.config.pools import Pool
from ultrascale.config.scheduling import Scheduling
from ultrascale.core.engine import engine_of

_EVERYONE = IPv4Network("0.0.0.0/0")
AddonVersion = Annotated[
    str,
    matching(
        r"v[0-9]{1,5}\.[0-9]{1,5}\.[0-9]{1,5}-eksbuild\.[0-9]{1,5}",
        "not the version of an EKS add-on",
        "write it as `aws eks describe-addon-versions` does, such as v1.21.1-eksbuild.1",
    ),
]
Duration = Annotated[str, matching(r"[0-9]{1,4}m", "not a duration in minutes", "write it as 30m")]


class Endpoint(Section):
    """Endpoints of the Kubernetes API."""

    private: bool = True
    """Private endpoint, which nodes and manifests use. It has to stay true."""

    public_cidrs: Annotated[Distinct[Network4], in_schema(maxItems=eks.MOST_PUBLIC_CIDRS)] = ()
    """Ranges that may reach the public endpoint. Default: no public endpoint."""


class Kubernetes(Section):
    """The EKS control plane."""

    version: Annotated[str, one_of(eks.SUPPORTED_VERSIONS)] = eks.DEFAULT_VERSION
    """Kubernetes minor version. Volcano and HyperPod may support an older one at most."""

    control_plane_tier: Literal["standard", "xl", "2xl", "4xl", "8xl"] = "standard"
    """Tier of the provisioned control plane."""

    endpoint: Endpoint = Field(default_factory=Endpoint)
    """Access to the Kubernetes API."""

    admins: Distinct[RoleArn] = ()
    """ARNs of IAM roles with cluster administration. Default: none, so nobody can use kubectl."""

    access: tuple[Access, ...] = ()
    """Rights of other IAM roles, in the whole cluster or in some namespaces. Default: none."""

    service_cidr: Network4 = eks.DEFAULT_SERVICE_CIDR
    """Range of Kubernetes Services. It can never change."""

    event_ttl: Duration = eks.DEFAULT_EVENT_TTL
    """Time that the API server keeps events, 10m to 60m."""

    logs: Distinct[eks.LogType] | None = None
    """Control-plane logs that go to CloudWatch: `api`, `audit`, `authenticator`,
    `controllerManager`, `scheduler`; an empty list for none.

    Default: all up to 5,000 nodes, `api` and `authenticator` above.
    """

    addons: Annotated[
        Mapping[DnsLabel, AddonVersion], in_schema(propertyNames={"enum": sorted(known_addons())})
    ] = Field(default_factory=dict[str, str])
    """Versions of EKS add-ons that replace the pinned ones, by add-on name.

    Default: the pinned versions.
    """

    instance_id_node_names: bool | None = None
    """Name Karpenter's nodes by their instance ids, so that a starting node need not ask EC2 for
    its DNS name.

    Nodes that run keep their names and their role. Default: true above 20,000 nodes.
    """

    node_local_dns: bool | None = None
    """Cache of names on every node of a node group or of Karpenter, which its pods ask first.

    It stays in the cluster for nodes that run. Default: true above 1,000 nodes.
    """

    _facts: VersionFacts = PrivateAttr(default=VersionFacts())

    def count_with(self, facts: VersionFacts) -> None:
        """Answer by the facts that the file records of the version, where it does."""
        self._facts = facts

    @property
    def facts(self) -> VersionFacts:
        """Facts of the version, recorded ones before the catalog's."""
        return self._facts


@rule
def service_range_is_legal(kubernetes: Kubernetes) -> Mistakes:
    block = kubernetes.service_cidr
    shortest, longest = eks.SERVICE_CIDR_SHORTEST_PREFIX, eks.SERVICE_CIDR_LONGEST_PREFIX
    if not shortest <= block.prefixlen <= longest:
        todo = f"use a mask from /{shortest} to /{longest}"
        yield refuse("service_cidr", "not a size that EKS takes for Services", todo)
    if not any(block.subnet_of(private) for private in eks.SERVICE_CIDR_RANGES):
        todo = f"use a range of {', '.join(str(r) for r in eks.SERVICE_CIDR_RANGES)}"
        yield refuse("service_cidr", "not a private range", todo)


@rule
def service_range_is_apart(kubernetes: Kubernetes, network: Network) -> Mistakes:
    block = kubernetes.service_cidr
    got = None if "service_cidr" in kubernetes.model_fields_set else f"the default {block}"
    for name, other in (
        *(("the VPC's range", cidr) for cidr in network.ranges[:1] if network.vpc is None),
        *(("network.pod_cidrs", cidr) for cidr in network.pod_blocks),
        *(("network.vpc.cidrs", cidr) for cidr in network.ranges if network.vpc is not None),
        *(("network.connected_cidrs", cidr) for cidr in network.connected_cidrs),
    ):
        if block.overlaps(other):
            yield refuse("service_cidr", f"overlaps {name} {other}", "choose a free range", got=got)
            return


@rule
def cache_of_names_is_asked(kubernetes: Kubernetes, pools: Every[Pool]) -> Mistakes:
    if kubernetes.node_local_dns and not any(pool.facts.runs_pinned_image for pool in pools):
        todo = "leave it out: EKS Auto Mode has a cache of its own, and HyperPod asks CoreDNS"
        yield refuse("node_local_dns", "nodes of no pool use this cache", todo)


@rule
def version_is_supported(kubernetes: Kubernetes, scheduling: Scheduling) -> Mistakes:
    version, engine = kubernetes.version, engine_of(scheduling)
    if version not in eks.SUPPORTED_VERSIONS:
        todo = f"use {', '.join(eks.SUPPORTED_VERSIONS)}"
        yield refuse("version", "not a Kubernetes version this product supports", todo)
    elif (latest := engine.latest_kubernetes) and _later(version, latest):
        yield refuse("version", f"later than {engine.word} supports", f"use {latest}")


@rule
def admins_are_of_the_partition(kubernetes: Kubernetes, identity: Identity) -> Mistakes:
    partition = regions.lookup_region(identity.region).partition
    for number, arn in enumerate(kubernetes.admins):
        if arn.split(":")[1] != partition:
            wrong = f"a role outside partition {partition} of {identity.region}"
            yield refuse(f"admins.{number}", wrong, f"write arn:{partition}:iam::ACCOUNT:role/NAME")


@rule
def endpoint_can_be_reached(endpoint: Endpoint) -> Mistakes:
    if not endpoint.private:
        # By a public endpoint they would come from the NAT gateways' addresses, which no range of
        # the file names.
        wrong = "nodes and manifests reach the API server through the private endpoint"
        yield refuse("private", wrong, "set private: true")


def whole_internet(key: str, blocks: Sequence[IPv4Network], opens: str) -> Mistakes:
    """Yield public ranges at ``key`` that, alone or together, hold more than any network."""
    todo, largest = "name your own networks", vpc.LARGEST_ALLOCATION_MASK
    public = [block for block in blocks if vpc.not_on_the_internet(block) is None]
    for number, block in enumerate(blocks):
        if block == _EVERYONE:
            yield refuse(f"{key}.{number}", f"opens {opens} to the whole internet", todo)
        elif block in public and block.prefixlen < largest:
            wrong = f"wider than the largest network of the internet, a /{largest}"
            yield refuse(f"{key}.{number}", wrong, todo)
    together = sum(block.num_addresses for block in vpc.whole_networks(public))
    most = 2 ** (32 - largest)
    if together > most and all(block.prefixlen >= largest for block in public):
        wrong = f"ranges of {together:,} addresses, more than any network has: {most:,} at most"
        yield refuse(key, wrong, todo, got="")


@rule
def endpoint_is_for_some(endpoint: Endpoint) -> Mistakes:
    """Yield ranges that let everybody in, alone or together, and ranges that let nobody in."""
    blocks = endpoint.public_cidrs
    yield from whole_internet("public_cidrs", blocks, "the Kubernetes API")
    for number, block in enumerate(blocks):
        special = vpc.not_on_the_internet(block)
        if block != _EVERYONE and special is not None:
            wrong = f"a range of {special.use}: nobody reaches the endpoint from there"
            todo = "name your public addresses"
            yield refuse(f"public_cidrs.{number}", wrong, todo)
    if len(blocks) > eks.MOST_PUBLIC_CIDRS:
        wrong = f"more ranges than the {eks.MOST_PUBLIC_CIDRS} that EKS takes"
        yield refuse("public_cidrs", wrong, "join some, or use a VPN", got=str(len(blocks)))


@rule
def event_ttl_is_in_bounds(kubernetes: Kubernetes) -> Mistakes:
    shortest, most = eks.EVENT_TTL_MINUTES
    if not shortest <= int(kubernetes.event_ttl.removesuffix("m")) <= most:
        yield refuse("event_ttl", "out of EKS's bounds", f"write {shortest}m to {most}m")


@rule
def addons_are_ours(kubernetes: Kubernetes) -> Mistakes:
    for name in kubernetes.addons:
        if name in REFUSED:
            yield Mistake(("addons", name), *REFUSED[name], got="")
        elif name not in known_addons():
            wrong = f"unknown add-on {name!r}"
            yield Mistake(("addons", name), wrong, near(name, known_addons()), got="")


def _later(version: str, latest: str) -> bool:
    return eks.SUPPORTED_VERSIONS.index(version) > eks.SUPPORTED_VERSIONS.index(latest)


@rule(severity="warning")
def nobody_has_access(kubernetes: Kubernetes) -> Mistakes:
    if kubernetes.admins or any(access.policy == "cluster-admin" for access in kubernetes.access):
        return
    lost = "nobody administers the cluster" if kubernetes.access else "nobody can use kubectl"
    yield note("admins", f"empty, so {lost}; add the ARN of an IAM role")
