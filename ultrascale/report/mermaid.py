"""Topology and calendar as diagrams of Mermaid, which GitHub draws in a pull request."""

from collections.abc import Iterator

from ultrascale.plan.model import ClusterNeeds, PoolPart
from ultrascale.report.words import PURCHASES, SUBNETS, purchase_of, ranges

# Strokes, as GitHub's background is light or dark.
_STROKES = {
    "on-demand": "#0072b2",
    "spot": "#e69f00",
    "capacity-block": "#009e73",
    "training-plan": "#d55e00",
    "odcr": "#cc79a7",
}
_TIME = "%Y-%m-%dT%H:%M"
_ESCAPED = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "`": "#96;"}


def topology_diagram(needs: ClusterNeeds) -> Iterator[str]:
    """Yield the lines of a flowchart: control plane, VPC, kinds of subnets, pools, file systems."""
    parts = needs.topology
    yield "flowchart TB"
    yield f"  cp[{_label('EKS control plane', f'Kubernetes {parts.kubernetes}', parts.tier)}]"
    # A subgraph's title has one line.
    title = f"VPC {ranges((parts.vpc_cidr, *parts.secondary_cidrs))}"
    if parts.existing is not None:
        title = f"existing {title}, {parts.existing.vpc_id}"
    yield f"  subgraph vpc[{_label(title)}]"
    for kind, name in SUBNETS.items():
        pools = [(index, pool) for index, pool in enumerate(parts.pools) if pool.subnets == kind]
        if not pools:
            continue
        yield f"    subgraph {kind}[{_label(f'{name} subnets')}]"
        for index, pool in pools:
            yield f"      p{index}[{_pool(pool)}]:::{_class(pool)}"
        yield "    end"
    for index, disk in enumerate(parts.file_systems):
        size = disk.existing or f"{disk.capacity_gib:,} GiB"
        yield f"    f{index}[({_label(f'FSx for Lustre: {disk.name}', f'{size} in {disk.zone}')})]"
    yield "  end"
    yield "  cp --- vpc"
    for pool in {pool.purchase: pool for pool in parts.pools}.values():
        stroke = _STROKES.get(pool.purchase, "#6b7683")
        yield f"  classDef {_class(pool)} stroke:{stroke},stroke-width:3px"


def calendar_diagram(needs: ClusterNeeds) -> Iterator[str]:
    """Yield the lines of a Gantt chart: each window with its drain."""
    yield "gantt"
    yield "  dateFormat YYYY-MM-DDTHH:mm"
    yield "  axisFormat %d %b"
    # It would be the reader's clock.
    yield "  todayMarker off"
    for window in needs.calendar:
        starts, drained, ends = (
            f"{moment:{_TIME}}" for moment in (window.starts, window.usable_until, window.ends)
        )
        # Colons, semicolons and commas part the fields of a task.
        yield f"  section {_plain(window.pool)}"
        yield f"  {_plain(PURCHASES.get(window.purchase, window.purchase))} :{starts}, {drained}"
        yield f"  drain :crit, {drained}, {ends}"


def _pool(pool: PoolPart) -> str:
    nodes = f"{pool.nodes_max:,} nodes"
    if pool.nodes_min != pool.nodes_max:
        nodes = f"{pool.nodes_min:,} to {nodes}"
    if pool.shards > 1:
        nodes = f"{nodes} in {pool.shards:,} shards"
    return _label(pool.pool, nodes, purchase_of(pool), ", ".join(pool.zones))


def _class(pool: PoolPart) -> str:
    return pool.purchase.replace("-", "_")


def _label(*lines: str) -> str:
    """Return lines as the quoted text of a node."""
    escaped = (
        "".join(_ESCAPED.get(letter, letter) for letter in " ".join(line.split()))
        for line in lines
        if line
    )
    return f'"{"<br/>".join(escaped)}"'


def _plain(words: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_. " else " " for letter in words)
