"""Decisions that a plan makes for a cluster file, each with its reason."""

from collections.abc import Iterator, Mapping, Sequence

from ultrascale.catalog import scale as limits
from ultrascale.frozen import Frozen
from ultrascale.plan.model import (
    ClusterPlan,
    ControlPlaneNeeds,
    ControlPlanePlan,
    CopiesPlan,
    Decision,
    ImagesPlan,
    NetworkPlan,
    NodesPlan,
    PoolPlan,
    SizedBy,
)
from ultrascale.plan.needs.pools import shards_of
from ultrascale.plan.network.policies import policy_remarks
from ultrascale.plan.network.vpc import node_subnet_kind
from ultrascale.plan.scale import ROWS, scale_for

_SIZED_BY: Mapping[SizedBy, tuple[str, str]] = {
    "file": ("the file alone says how many nodes there are", "a deployment changes the number"),
    "provisioner": ("nodes come and go with pods", "what launches them follows pods that wait"),
    "cluster-autoscaler": ("nodes come and go with pods", "by the Cluster Autoscaler"),
    "calendar": ("nodes are there in the window alone", "a schedule follows its start and drain"),
}


def plan_decisions(plan: ClusterPlan, needs: ControlPlaneNeeds) -> tuple[Decision, ...]:
    """Return the decisions for ``plan``, the widest first.

    Args:
        plan: The cluster.
        needs: Its load on the control plane.
    """
    subjects: dict[tuple[str, str], list[str]] = {}
    for decision in (
        *_control_plane(plan.control_plane, plan.all_pools, needs),
        *_network(plan.network, plan.nodes),
        *_scale(plan),
        *_pools(plan.network, plan.all_pools),
        *_images(plan.images, plan.copies),
        *_repairs(plan.nodes),
    ):
        subjects.setdefault((decision.choice, decision.reason), []).append(decision.subject)
    for part in plan.parts:
        for decision in part.decisions:
            subjects.setdefault((decision.choice, decision.reason), []).extend(decision.subjects)
    return tuple(
        Decision(subjects=tuple(names), choice=choice, reason=reason)
        for (choice, reason), names in subjects.items()
    )


class _Choice(Frozen, kw_only=False):
    """A decision about one part of a cluster, as `Decision`."""

    subject: str
    choice: str
    reason: str = ""


def _control_plane(
    control_plane: ControlPlanePlan, pools: Sequence[PoolPlan], needs: ControlPlaneNeeds
) -> Iterator[_Choice]:
    fits = f"the smallest tier that holds it is {needs.smallest}"
    yield _Choice(
        "control plane",
        f"tier {needs.tier}",
        needs.advice or (f"{fits}" if needs.smallest else "no published tier holds it"),
    )
    where = ", ".join(control_plane.public_cidrs)
    yield _Choice(
        "control plane",
        f"the endpoint is reached from {where} and within the VPC"
        if where
        else "the endpoint is private",
        "" if where else "the file names no range that reaches a public one",
    )
    logs = ", ".join(control_plane.log_types) or "none"
    row = scale_for(_nodes(pools))
    yield _Choice(
        "control plane",
        f"logs that are written: {logs}",
        "the audit log has a line for each request, of each node"
        if "audit" not in control_plane.log_types and "audit" not in row.log_types
        else "",
    )


def _network(network: NetworkPlan, nodes: NodesPlan) -> Iterator[_Choice]:
    yield _layout(network)
    if network.existing is None and network.secondary_cidrs:
        yield from _pod_ranges(network)
    if network.reserves_by_function:
        yield _Choice(
            "network",
            "a function reserves ranges for /28 prefixes",
            "CloudFormation has no type for subnet CIDR reservations in this Region",
        )
    if network.interface_cleaner is not None:
        yield _Choice(
            "network",
            "a function deletes interfaces that ended nodes left",
            "each node would ask EC2 each hour for all interfaces of the cluster",
        )
    if network.egress == "none":
        yield from _closed(network, nodes)
    for remark in policy_remarks(network.policies):
        choice, _, reason = remark.partition(": ")
        yield _Choice("network", choice[0].lower() + choice[1:], reason)


def _closed(network: NetworkPlan, nodes: NodesPlan) -> Iterator[_Choice]:
    """Yield the decisions for a network that reaches services through endpoints alone."""
    endpoints = network.endpoints
    counts = {
        state: sum(endpoint.state == state and bool(endpoint.reasons) for endpoint in endpoints)
        for state in ("made", "present")
    }
    yield _Choice(
        "network",
        f"{sum(counts.values())} endpoints that parts of the cluster call: {counts['made']} that "
        f"are made, {counts['present']} that are there",
        "network.egress says none: `ultrascale network needs` tells who calls which",
    )
    if nodes.karpenter is not None:
        yield _Choice(
            "network",
            "Karpenter's nodes take instance profiles that the stacks make, and its On-Demand "
            "prices are those of its release",
            "IAM has no endpoint, and the Price List API has one in few Regions",
        )


def _layout(network: NetworkPlan) -> _Choice:
    zones = f"{len(network.zones)} zones"
    if network.existing is not None:
        ids = {subnet.id for subnet in network.subnets}
        return _Choice(
            "network",
            f"{len(ids):,} subnets of {network.existing.vpc_id} in {zones}, named by id; no "
            "subnet, route, gateway or flow log is made",
            "the VPC is not ours: its owner makes what is missing",
        )
    subnets = f"{len(network.subnets):,} subnets in {zones}"
    if network.egress == "none":
        return _Choice(
            "network",
            f"{subnets}, without a NAT gateway and without an internet gateway",
            "network.egress says none: services are reached by endpoints",
        )
    return _Choice(
        "network",
        f"{subnets}, a NAT gateway in each",
        "traffic to the internet stays in its zone, and outlives another one",
    )


def _pod_ranges(network: NetworkPlan) -> Iterator[_Choice]:
    prefixes = "1 /28 prefix" if network.prefixes_per_node == 1 else "2 /28 prefixes"
    yield _Choice(
        "network",
        f"nodes of the secondary ranges hold {prefixes}",
        "the ranges have room for no more"
        if network.prefixes_per_node == 1
        else "one in use and one in reserve",
    )
    if network.plain_in_pod_ranges:
        yield _Choice(
            "network",
            "nodes without accelerators live in the secondary ranges as well",
            "the VPC's own range has no room for them",
        )
    if network.dealt_by_need:
        yield _Choice(
            "network",
            "secondary ranges go to the zones that need them",
            "dealt evenly, they would not hold every zone's nodes",
        )


def _nodes(pools: Sequence[PoolPlan]) -> int:
    return sum(pool.max_nodes for pool in pools)


def _scale(plan: ClusterPlan) -> Iterator[_Choice]:
    pools, network = plan.all_pools, plan.network
    nodes, row = _nodes(pools), scale_for(_nodes(pools))
    size = f"{nodes:,} nodes"
    if row is not ROWS[-1]:
        sized = f"the settings for up to {row.nodes:,} nodes"
    else:
        sized = f"the settings for {row.nodes:,} nodes, the largest there are"
    yield _Choice("scale", sized, f"{size} at most")
    if network.node_local_dns is not None:
        yield _Choice(
            "scale",
            f"a DNS cache on every node, at {network.node_local_dns.address}",
            f"{size} would ask CoreDNS for each name",
        )
    if row.proxy_mode == "nftables" and all(pool.facts.states_kernel for pool in pools):
        yield _Choice(
            "scale",
            "kube-proxy in its nftables mode",
            "it looks up Services in a time that does not grow with their number",
        )
    if not row.cluster_autoscaler:
        yield _Choice(
            "scale",
            "no Cluster Autoscaler",
            f"it is tested to {limits.AUTOSCALED_NODES:,} nodes, and these are {nodes:,}",
        )
    if row.measured_nodes == "sampled" and any(part.has_agents for part in plan.parts):
        yield _Choice(
            "scale",
            "metric and log agents on system nodes and labelled ones alone",
            "each agent polls the API server, and all share one quota of log calls",
        )
    if not row.volumes_everywhere:
        yield _Choice(
            "scale",
            "the EBS CSI driver on system nodes alone",
            "a job's scratch is local NVMe, and its data is in Lustre or S3",
        )


def _pools(network: NetworkPlan, pools: Sequence[PoolPlan]) -> Iterator[_Choice]:
    for name, shards in shards_of(pools).items():
        yield from _pool(network, name, shards[0], len(shards))


def _pool(network: NetworkPlan, name: str, pool: PoolPlan, shards: int) -> Iterator[_Choice]:
    choice, reason = _SIZED_BY[pool.sized_by]
    divided = f", in {shards} shards" if shards > 1 else ""
    yield _Choice(name, f"{choice}{divided}, in {node_subnet_kind(network, pool)} subnets", reason)
    if pool.fallback_nodes:
        yield _Choice(
            name,
            "a second NodePool of On-Demand capacity, of lower weight",
            "for times when Spot is short",
        )
    if pool.accelerator is not None and pool.without_efa is not None:
        yield _Choice(name, "no EFA interfaces", pool.without_efa)
    if pool.replace_before_launch:
        yield _Choice(
            name,
            "an update takes a node away before it starts its successor",
            "scarce capacity has no room for both",
        )


def _images(images: ImagesPlan, copies: CopiesPlan | None) -> Iterator[_Choice]:
    for repository, reason in images.unbuilt.items():
        yield _Choice("images", f"nothing is built for {repository}", reason)
    if images.cache is not None:
        yield _Choice(
            "images",
            "images of public registries come through a cache in the Region",
            "without a token, the registries answer so many nodes at once with 429",
        )
    if copies is not None:
        yield _Choice(
            "images",
            f"images and charts come from {copies.location}",
            f"{copies.key}; those of Amazon ECR in the Region come from where they are",
        )


def _repairs(nodes: NodesPlan) -> Iterator[_Choice]:
    for repair in nodes.repairs:
        slot = f"; its reserved slot is {repair.slot}" if repair.slot else ""
        by = f"{repair.decided_by} decides" if repair.decided_by else "nobody decides"
        yield _Choice(
            repair.pool, f"repair of a broken node: {repair.action} ({by})", f"{repair.meets}{slot}"
        )
