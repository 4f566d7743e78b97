"""Needs of a cluster in a network team's VPC: the page that the team gets."""

from collections.abc import Iterable, Iterator, Sequence

from ultrascale.catalog import eks, endpoints, quotas, registries, vpc
from ultrascale.plan.model import (
    ClusterPlan,
    ControlPlanePlan,
    Figure,
    Figures,
    ImagesPlan,
    NetworkNeed,
    NetworkNeeds,
    NetworkNeedState,
    NetworkPlan,
    PlannedPart,
    PoolPlan,
    StorageNeed,
    SubnetKind,
    SubnetNeeds,
    copies_of,
)
from ultrascale.plan.needs.existing_storage import plan_storage_needs
from ultrascale.plan.needs.pools import plan_pool_needs, plan_totals
from ultrascale.plan.needs.subnets import plan_subnet_needs
from ultrascale.plan.stacks import stack_of

_REQUIREMENTS = "https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html"
_SHARING = "https://docs.aws.amazon.com/vpc/latest/userguide/vpc-sharing.html"
_SHARE_LIMITS = "https://docs.aws.amazon.com/vpc/latest/userguide/vpc-share-limitations.html"
_PRIVATE_DNS = "https://docs.aws.amazon.com/vpc/latest/privatelink/manage-dns-names.html"
_GROUPS = "https://docs.aws.amazon.com/eks/latest/userguide/sec-group-reqs.html"
_DISCOVERY = "https://github.com/aws/amazon-vpc-cni-k8s/tree/b5218838#enable_subnet_discovery-v1180"
_BALANCERS = "https://docs.aws.amazon.com/eks/latest/userguide/network-load-balancing.html"
_USES: dict[SubnetKind, str] = {
    "control-plane": "control-plane",
    "private": "nodes",
    "accelerated": "accelerated",
}
"""Word of a file's `use` for each kind of subnet that the network team gives."""


def plan_network_needs(plan: ClusterPlan) -> NetworkNeeds:
    """Return the needs of ``plan`` in the VPC that it is deployed into.

    For a cluster that makes its VPC, they are the needs in another VPC in its place.
    """
    existing = plan.network.existing
    pools = plan_pool_needs(plan.region, plan.network, plan.all_pools)
    return NetworkNeeds(
        cluster=plan.name,
        region=plan.region,
        account=plan.account,
        vpc=existing.vpc_id if existing is not None else None,
        owner=existing.owner if existing is not None else None,
        egress=plan.network.egress,
        needs=(
            *_ranges(plan.network, plan.control_plane),
            *_dns(),
            *_subnets(plan.network, plan.all_pools),
            *_routes(plan.network),
            *_hosts(plan.region, plan.parts),
            *_outside(plan.images),
            *_endpoints(plan.region, plan.network, _s3_buckets(plan)),
            *_rules(plan.network, plan_storage_needs(plan, plan.network, plan.storage)),
            *_sharing(plan.account, plan.network),
            *_tags(),
            *_quotas(plan.network, plan_totals(plan.network, pools)),
        ),
    )


def _ranges(network: NetworkPlan, control_plane: ControlPlanePlan) -> Iterator[NetworkNeed]:
    ranges = ", ".join(map(str, (network.vpc_cidr, *network.secondary_cidrs)))
    yield NetworkNeed(
        topic="vpc",
        subject="IPv4 ranges",
        need=ranges,
        state="stated" if network.existing is not None else "missing",
        why="subnets lie in them, and endpoints and the API server let them in; a range that is "
        "added later is known to the control plane within an hour",
        sources=(_REQUIREMENTS,),
    )
    yield NetworkNeed(
        topic="vpc",
        subject=f"service range {control_plane.service_cidr}",
        need="overlaps no range of the VPC and nothing that is routed from it",
        state="to-check",
        why="a pod's packet to such an address goes to a Service of the cluster instead; the range "
        "can never change (kubernetes.service_cidr, network.connected_cidrs)",
        sources=(_REQUIREMENTS,),
    )


def _dns() -> Iterator[NetworkNeed]:
    for attribute in ("enableDnsSupport", "enableDnsHostnames"):
        yield NetworkNeed(
            topic="dns",
            subject=attribute,
            need="true",
            state="to-check",
            why="nodes never register without both, and endpoints have no private names",
            sources=(_REQUIREMENTS, _PRIVATE_DNS),
        )
    yield NetworkNeed(
        topic="dns",
        subject="DHCP options",
        need="AmazonProvidedDNS, or servers that forward names of AWS to the VPC's own resolver",
        state="to-check",
        why="only that resolver knows the private addresses of the API server and of endpoints",
        sources=(_REQUIREMENTS,),
    )


def _subnets(network: NetworkPlan, pools: Sequence[PoolPlan]) -> Iterator[NetworkNeed]:
    needs = plan_subnet_needs(network, pools)
    for kind, use in _USES.items():
        for need in needs:
            if need.kind == kind:
                yield _subnet(network, need, use)


def _subnet(network: NetworkPlan, need: SubnetNeeds, use: str) -> NetworkNeed:
    ids = [
        subnet.id or str(subnet.cidr)
        for subnet in network.of_kind(need.kind)
        if subnet.zone == need.zone
    ]
    stated = network.existing is not None
    if need.kind == "control-plane":
        size = f"/{_mask(addresses=eks.ADVISED_CONTROL_PLANE_ADDRESSES)}"
        return NetworkNeed(
            topic="subnets",
            subject=f"{use} in {need.zone}" + (f": {', '.join(ids)}" if stated else ""),
            need=f"{eks.ADVISED_CONTROL_PLANE_ADDRESSES} free addresses, at least "
            f"{eks.LEAST_CONTROL_PLANE_ADDRESSES}, such as an empty {size}",
            state="stated" if stated else "missing",
            why="EKS puts 2 to 4 interfaces into them, and makes new ones beside the old at each "
            "upgrade: the room must stay free; two zones at least, and never another set of zones",
            formula=f"{eks.LEAST_CONTROL_PLANE_ADDRESSES} that EKS asks for, "
            f"{eks.ADVISED_CONTROL_PLANE_ADDRESSES} that it advises",
            sources=(_REQUIREMENTS,),
        )
    addresses = need.figures["addresses_needed"]
    return NetworkNeed(
        topic="subnets",
        subject=f"{use} in {need.zone}" + (f": {', '.join(ids)}" if stated else ""),
        need=f"{_number(addresses)} free addresses, such as {_size(need)}",
        state="stated" if stated else "missing",
        why=_why_nodes(need),
        formula=addresses.formula,
        sources=addresses.sources or need.figures["addresses"].sources,
    )


def _why_nodes(need: SubnetNeeds) -> str:
    nodes = need.figures["nodes"]
    who = "with accelerators" if need.kind == "accelerated" else "without accelerators"
    return (
        f"nodes {who} with their pods, and what else lies there, at full size: {nodes.formula} = "
        f"{_number(nodes)} nodes"
    )


def _size(need: SubnetNeeds) -> str:
    """Return a size that holds the needs of a zone: a mask, or a number of largest subnets."""
    # Where blocks of 16 are not free, nodes take single addresses.
    taken = need.figures.get("prefixes_needed")
    prefixes = int(taken.value or 0) if taken is not None else 0
    addresses = int(need.figures["addresses_needed"].value or 0)
    # A network team's subnet has no reservations: a single address may break any block.
    singles = addresses - prefixes * eks.ADDRESSES_PER_PREFIX
    blocks = prefixes + singles if prefixes else 0
    mask = _mask(addresses=addresses, blocks=blocks)
    if mask >= vpc.LARGEST_RANGE_MASK:
        return f"an empty /{mask}"
    return f"{2 ** (vpc.LARGEST_RANGE_MASK - mask)} empty /{vpc.LARGEST_RANGE_MASK}"


def _mask(*, addresses: int, blocks: int = 0) -> int:
    """Return the mask of the smallest range with as many free addresses and free /28 blocks."""
    kept = vpc.RESERVED_ADDRESSES_AT_START + vpc.RESERVED_ADDRESSES_AT_END
    # The first block and the last lose addresses to EC2.
    addresses_needed = max(
        addresses + kept, (blocks + 2) * eks.ADDRESSES_PER_PREFIX if blocks else 0
    )
    return min(32 - (addresses_needed - 1).bit_length(), vpc.SMALLEST_RANGE_MASK)


def _routes(network: NetworkPlan) -> Iterator[NetworkNeed]:
    egress = network.egress
    yield NetworkNeed(
        topic="routes",
        subject="subnets among themselves",
        need="the local route, and network ACLs that let all of their traffic through",
        state="to-check",
        why="the API server calls nodes and webhooks, nodes call it, and workers exchange "
        "gradients on any port; security groups bound all of it",
        sources=(_GROUPS,),
    )
    ways = {
        "nat": ("0.0.0.0/0 to a NAT gateway", "images, packages and AWS are reached through it"),
        "transit-gateway": (
            "0.0.0.0/0 to the transit gateway, and a way back to these subnets",
            "images, packages and AWS are reached through it",
        ),
        "none": ("no route to the internet", "egress: none; nothing that is deployed asks for one"),
    }
    need, why = ways[egress]
    yield NetworkNeed(
        topic="routes",
        subject="subnets of nodes and accelerated nodes",
        need=need,
        state="to-check",
        why=why,
    )
    yield NetworkNeed(
        topic="routes",
        subject="control-plane subnets",
        need="the local route; no other is needed",
        state="to-check",
        why="EKS's interfaces there answer nodes of the VPC alone, unless the account demands "
        "controlPlaneEgressMode CUSTOMER_ROUTED",
        sources=("https://docs.aws.amazon.com/eks/latest/userguide/control-plane-egress.html",),
    )


def _hosts(region: str, parts: Sequence[PlannedPart]) -> Iterator[NetworkNeed]:
    """Yield the hosts outside all endpoints that are called from the VPC."""
    hosts: dict[str, str] = {}
    if (copies := copies_of(parts)) is not None:
        host = copies.location.partition("/")[0]
        hosts[host] = "nodes and functions pull images and charts"
        _, other = registries.parse_ecr_registry(host) or ("", region)
        if other != region:
            bucket = endpoints.LAYER_BUCKET.replace("REGION", other)
            layers = f"{bucket}.s3.{other}.{registries.domain(other)}"
            hosts[layers] = "layers of its images come from Amazon S3 of its Region"
    for part in parts:
        hosts |= part.hosts
    for host, why in hosts.items():
        if endpoints.service_of_host(host, region) is None:
            yield NetworkNeed(
                topic="routes",
                subject=host,
                need="TCP 443 from subnets of nodes, and a DNS name",
                state="to-check",
                why=f"{why}; no endpoint of the Region leads there",
            )


def _outside(images: ImagesPlan) -> Iterator[NetworkNeed]:
    """Yield the functions and builds that run in networks of AWS's own, and not in the VPC."""
    refused = "a policy that demands aws:SourceVpc or aws:SourceVpce refuses their roles"
    yield NetworkNeed(
        topic="routes",
        subject="functions of the stacks, in AWS Lambda's own network",
        need="no route; AWS's public endpoints answer them",
        state="to-check",
        why="they change the account alone, while a stack changes and on schedules: "
        f"{refused}, and the deployment fails; those that call the API server run in the subnets "
        "of nodes",
        sources=("https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html",),
    )
    for build in images.builds:
        yield NetworkNeed(
            topic="routes",
            subject=f"build of image {build.repository}, in AWS CodeBuild's own network",
            need="no route; it pulls base images and packages from their registries or the mirror, "
            "and pushes to Amazon ECR",
            state="to-check",
            why=refused,
            sources=("https://docs.aws.amazon.com/codebuild/latest/userguide/vpc-support.html",),
        )


def _endpoints(
    region: str, network: NetworkPlan, buckets: Iterable[tuple[str, str]]
) -> Iterator[NetworkNeed]:
    exists = network.existing is not None
    states: dict[str, NetworkNeedState] = {"made": "ours", "present": "stated"}
    for endpoint in network.endpoints:
        if not endpoint.reasons:
            continue
        state = states.get(endpoint.state, "missing") if exists else "missing"
        if state == "missing" and network.egress != "none" and exists:
            continue  # the calls go to the internet
        gateway = endpoint.kind == "gateway"
        # Addresses of S3 stay public behind it: ACLs for the VPC's ranges alone stop image layers.
        form = "interface"
        if gateway:
            form = (
                "gateway, in the route tables of all subnets of nodes; network ACLs let TCP 443 "
                "out to the service's public addresses (its prefix list), and the answers in"
            )
        rare = "" if endpoint.required else "; can be left out"
        yield NetworkNeed(
            topic="endpoints",
            subject=f"com.amazonaws.{region}.{endpoint.service}",
            need=f"{form}{'' if gateway else ', private DNS names'}{rare}",
            state=state,
            why="; ".join(endpoint.reasons),
            sources=(endpoints.SOURCE,),
        )
    (s3,) = (endpoint for endpoint in network.endpoints if endpoint.service == "s3")
    if s3.state == "present" or network.egress == "none":
        for bucket, why in buckets:
            yield NetworkNeed(
                topic="endpoints",
                subject=f"policy of the S3 endpoint: {bucket}",
                need="lets it through, where the endpoint has a policy",
                state="to-check",
                why=why,
                sources=(endpoints.S3_POLICY_SOURCE,),
            )


def _s3_buckets(plan: ClusterPlan) -> Iterator[tuple[str, str]]:
    for bucket, why in endpoints.S3_GATEWAY_BUCKETS:
        yield bucket.replace("REGION", plan.region), why
    for existing in plan.storage.existing_buckets:
        yield existing.bucket_name, f"data of {existing.name}, which pods use"
    if plan.storage.buckets:
        # CloudFormation begins their names with that of the stack.
        made = ", ".join(bucket.name for bucket in plan.storage.buckets)
        yield f"{stack_of(plan.name, 'storage')}-*", f"buckets that are made: {made}"
    for part in plan.parts:
        yield from part.bucket_names.items()


def _rules(network: NetworkPlan, storage: Sequence[StorageNeed]) -> Iterator[NetworkNeed]:
    nodes = sorted(
        {
            str(subnet.cidr)
            for kind in ("private", "accelerated")
            for subnet in network.of_kind(kind)
        }
    )
    if network.egress == "none" or any(
        endpoint.state == "present" for endpoint in network.endpoints
    ):
        yield NetworkNeed(
            topic="security-groups",
            subject="group of each interface endpoint",
            need=f"TCP 443 from {', '.join(nodes)}",
            state="to-check",
            why="nodes, pods and functions call services from any of these subnets",
            sources=(_PRIVATE_DNS,),
        )
    for task in storage:
        if task.security_group is not None:
            yield NetworkNeed(
                topic="security-groups",
                subject=f"{task.security_group} of file system {task.name} ({task.resource})",
                need=task.need,
                state="to-check",
                why=task.why,
                sources=(task.source,),
            )
    yield NetworkNeed(
        topic="security-groups",
        subject="the cluster's own groups",
        need="none beforehand",
        state="ours",
        why="EKS and the stacks make those of the cluster, of EFA and of file systems; they use "
        "neither the default group nor one of another account",
        sources=(_SHARING,),
    )


def _sharing(account: str | None, network: NetworkPlan) -> Iterator[NetworkNeed]:
    existing = network.existing
    if existing is None or not existing.shared:
        return
    account = account or "the cluster's account"
    ids = sorted({subnet.id for subnet in network.subnets if subnet.id is not None})
    yield NetworkNeed(
        topic="sharing",
        subject=f"resource share (RAM) with {account}",
        need=", ".join(ids),
        state="to-check",
        why="the account sees and uses only subnets that are shared with it; the share must come "
        "from the same organization",
        sources=(_SHARING,),
    )
    yield NetworkNeed(
        topic="sharing",
        subject=f"work of the owner, {existing.owner}",
        need="endpoints, routes, network ACLs, flow logs of subnets",
        state="to-check",
        why=f"{account} may make only interfaces, instances and security groups there",
        sources=(_SHARING, _SHARE_LIMITS),
    )
    yield NetworkNeed(
        topic="sharing",
        subject="zone ids",
        need="tell the zone id of each subnet, such as use1-az1",
        state="to-check",
        why="the same name may be another zone in another account, and capacity, file systems and "
        "subnets have to be in one",
        sources=(_SHARING,),
    )


def _tags() -> Iterator[NetworkNeed]:
    yield NetworkNeed(
        topic="tags",
        subject="subnets and VPC",
        need="none",
        state="ours",
        why="launch templates and node classes name subnets by id; a participant would not see "
        "tags of the owner",
        sources=(_SHARING,),
    )
    yield NetworkNeed(
        topic="tags",
        subject="kubernetes.io/role/cni on subnets of others",
        need="no effect",
        state="ours",
        why="the VPC CNI's discovery of subnets is off (ENABLE_SUBNET_DISCOVERY), so pods take no "
        "addresses of neighbours",
        sources=(_DISCOVERY,),
    )
    yield NetworkNeed(
        topic="tags",
        subject="kubernetes.io/role/internal-elb = 1",
        need="only where you add load balancers: on subnets of nodes, set from the cluster's "
        "account",
        state="to-check",
        why="a controller of load balancers finds its subnets by it; no part of the cluster makes "
        "one",
        sources=(_BALANCERS,),
    )


def _quotas(network: NetworkPlan, totals: Figures) -> Iterator[NetworkNeed]:
    usage = totals["address_usage"]
    asked = [
        endpoint
        for endpoint in network.endpoints
        if endpoint.kind == "interface" and endpoint.reasons
    ]
    ranges = 1 + len(network.secondary_cidrs)
    keeper = "the VPC's; neighbours share it"
    yield _quota(quotas.quota("network-address-usage"), usage, keeper)
    yield _quota(
        quotas.quota("interface-endpoints"),
        _figure(len(asked), "endpoints", f"{len(asked)} services above"),
        keeper,
    )
    yield _quota(
        quotas.quota("ipv4-ranges"),
        _figure(ranges, "ranges", f"{ranges} ranges of the VPC"),
        keeper,
    )
    yield _quota(
        quotas.quota("network-interfaces"),
        totals["network_interfaces"],
        "of the account that launches nodes, per Region",
    )


def _quota(quota: quotas.Quota, needed: Figure, keeper: str) -> NetworkNeed:
    value, default = needed.value or 0, quota.default or 0
    most = "" if quota.most is None else f", at most {quota.most:,}"
    return NetworkNeed(
        topic="quotas",
        subject=f"{quota.name} ({quota.code})",
        need=f"{round(value):,} of this cluster; default {default:,}{most}",
        state="missing" if value > default else "to-check",
        why=keeper,
        formula=needed.formula,
        sources=tuple(dict.fromkeys((quota.source, *needed.sources))),
    )


def _figure(value: int, unit: str, formula: str) -> Figure:
    return Figure(id=f"network.{unit}", value=value, unit=unit, formula=formula)


def _number(figure: Figure) -> str:
    return f"{round(figure.value or 0):,}"
