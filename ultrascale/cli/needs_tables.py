"""Tables of `ultrascale plan`: the needs of a cluster."""

from collections.abc import Iterator, Sequence

from rich.box import MARKDOWN, Box

from ultrascale.cli.cells import cell, number
from ultrascale.cli.needs_remarks import explained, remarks
from ultrascale.cli.output import say
from ultrascale.cli.screen import Table, screen
from ultrascale.plan.amounts import SPOT
from ultrascale.plan.jobs.checkpoints import span
from ultrascale.plan.model import (
    AccessEntryPlan,
    CheckpointNeeds,
    ClusterNeeds,
    ControlPlaneNeeds,
    Figure,
    Figures,
    IdentityPlan,
    KeyPolicyPlan,
    LoadNeed,
    MoneyItem,
    MoneyNeeds,
    PlacementPlan,
    PoolNeeds,
    QueueNeeds,
    QuotaNeed,
    RepairPlan,
    ServiceNeeds,
    StorageNeed,
    SubnetNeeds,
    WindowNeeds,
)
from ultrascale.plan.needs.load import beyond_published
from ultrascale.plan.needs.quotas import beyond_limits
from ultrascale.plan.needs.report import MONEY

_POOLS = {
    "nodes": "nodes",
    "vcpus": "vCPUs",
    "accelerators": "accelerators",
    "neuron_cores": "NeuronCores",
    "efa_interfaces": "EFA",
    "network_interfaces": "interfaces",
    "address_usage": "NAU",
    "usd_per_hour": "USD/hour",
    "usd_per_month": "USD/month",
}
_SUBNETS = {
    "addresses": "addresses",
    "addresses_needed": "needed",
    "prefixes": "/28 prefixes",
    "prefixes_needed": "needed",
    "full": "% full",
    "nodes": "nodes",
    "nodes_most": "at most",
    "pods": "pods",
    "nodes_of_skew": "all here",
}
_CONTROL_PLANE = (
    ("pods_per_second", "tier_pods_per_second", "pods scheduled a second, one for each node"),
    ("write_seats", "tier_api_seats", "API seats, of writes alone"),
    ("database", "tier_database", "GB stored, one pod of a job on each node"),
    ("database_most", "tier_database", "GB stored, every node full of pods"),
)
_LAUNCH = {
    "run_instances_minutes": ("minutes", "RunInstances, as throttled by default"),
    "binding_seconds": ("seconds", "a pod for each node is scheduled"),
    "image_pull_seconds": ("seconds", "ECR answers for one image on each node"),
    "minutes_to_first_step": ("minutes", "to the first step, one after the other"),
}
_CHECKPOINTS = {
    "nodes": "nodes",
    "gigabytes": "GB",
    "gb_per_second": "GB/s",
    "save_seconds": "written in",
    "held_seconds": "training waits",
    "seconds_between_failures": "fails each",
    "interval_seconds": "save each",
    "lost_percent": "% of time",
}
_MODELS = ("weights GB", "GiB of a device", "sequences", "load", "answers after")
_SERVICES = {
    "replicas": ("replicas", 0),
    "nodes": ("nodes", 0),
    "usd_per_hour": ("USD/hour", 2),
    "usd_per_million_tokens": ("USD/1M tokens", 2),
}
_STATES = {
    "within": "the default holds it",
    "ask": "ask for more",
    "beyond": "more than AWS publishes",
    "unknown": "look it up",
}
_LOAD_STATES = {
    "within": "published",
    "ask": "ask for more",
    "beyond": "more than anybody published",
    "unpublished": "",
}
_LEGEND = (
    "At full size. NAU: Network Address Usage. Money of pools: nodes alone.",
    "--explain prints the sum and the sources of each number.",
)


def print_needs(needs: ClusterNeeds, box: Box, tables: Sequence[str], *, explain: bool) -> None:
    """Print tables of ``needs`` to the terminal.

    Args:
        needs: The needs of a cluster.
        box: Borders of the tables.
        tables: Some of ``TABLES``. A table without rows is left out.
        explain: Whether each number follows with its formula and its sources.
    """
    console = screen()
    if tables:
        at = "" if needs.at is None else f" at {needs.at:%Y-%m-%d %H:%M} UTC"
        heading = "## " if box is MARKDOWN else ""
        say(f"{heading}{needs.name} in {needs.region}{at}")
    for name, table in _tables(needs, box):
        if name in tables:
            console.print(table)
    if "notes" in tables:
        for line in (*_told(needs, box), *_LEGEND):
            say(f"- {line}" if box is MARKDOWN else line)
    if explain:
        say()
        # As code: what Markdown makes of the lines is not what they say.
        lines = explained(needs)
        for line in ("```text", *lines, "```") if box is MARKDOWN else lines:
            say(line)


def _tables(needs: ClusterNeeds, box: Box) -> Iterator[tuple[str, Table]]:
    yield "pools", _pools(needs, box)
    yield "quotas", _quotas(needs.quotas, box)
    yield "subnets", _subnets(needs.subnets, box)
    yield "control-plane", _control_plane(needs.control_plane, box)
    yield "load", _load(needs.load, box)
    yield "launch", _launch(needs.launch, box)
    if needs.placement is not None and needs.placement.gangs:
        yield "placement", _placement(needs.placement, box)
    if needs.checkpoints:
        yield "checkpoints", _checkpoints(needs.checkpoints, box)
    if needs.services:
        yield "services", _services(needs.services, box)
    if needs.queues is not None:
        yield "queues", _queues(needs.queues, box)
    if needs.calendar:
        yield "windows", _calendar(needs.calendar, box)
    yield "repairs", _repairs(needs.repairs, box)
    if needs.access:
        yield "access", _access(needs.access, box)
    if needs.callers is not None and (needs.callers.admins or needs.callers.rights):
        yield "callers", _callers(needs.callers, box)
    if needs.keys:
        yield "keys", _keys(needs.keys, box)
    if needs.storage:
        yield "storage", _storage(needs.storage, box)
    yield "money", _money(needs.money, needs.pools, box)
    yield "money", _items(needs.money.items, box)


def _told(needs: ClusterNeeds, box: Box) -> Iterator[str]:
    # Who reads a page does not see the errors of the command.
    if box is MARKDOWN:
        lines = (*beyond_limits(needs), *beyond_published(needs.load))
        yield from (f"{line}." for line in lines)
    yield from remarks(needs)


def _table(box: Box, first: str, *titles: str, numbers: Sequence[str] = ()) -> Table:
    """Return a table whose rows go by their first cell: where it is wide, others are wrapped."""
    table = Table(box=box)
    table.add_column(first, no_wrap=True)
    for title in titles:
        table.add_column(title)
    for title in numbers:
        table.add_column(title, justify="right")
    return table


def _pools(needs: ClusterNeeds, box: Box) -> Table:
    table = _table(box, "pool", numbers=[*_POOLS.values()])
    for pool in needs.pools:
        table.add_row(pool.pool, *(_money_or_count(key, pool.figures[key]) for key in _POOLS))
    label = f"total, {SPOT}" if needs.money.spot_at_on_demand else "total"
    table.add_row(label, *(_money_or_count(key, needs.totals[key]) for key in _POOLS))
    return table


def _money_or_count(key: str, figure: Figure) -> str:
    return cell(figure, places=2 if key == MONEY[0] else 0)


def _quotas(needs: Sequence[QuotaNeed], box: Box) -> Table:
    table = _table(box, "quota", "name", numbers=("needed", "default", "at most"))
    table.add_column("")
    for need in needs:
        table.add_row(
            need.code or "",
            need.name,
            cell(need.needed, places=1),
            "" if need.default is None else number(need.default, places=0),
            "" if need.most is None else number(need.most, places=0),
            _plain(_state(need), box),
        )
    return table


def _state(need: QuotaNeed) -> str:
    if need.agreed is None:
        return _STATES[need.state]
    agreed = f"agreed: {number(need.agreed.value, places=0)}, {need.agreed.reference}"
    return agreed if need.state == "agreed" else f"{_STATES[need.state]}; {agreed}"


def _plain(text: str, box: Box) -> str:
    """Return what a user wrote as one line, of which Markdown makes one cell."""
    line = " ".join(text.split())
    return line.replace("|", "\\|") if box is MARKDOWN else line


def _subnets(needs: Sequence[SubnetNeeds], box: Box) -> Table:
    table = _table(box, "subnets", "zone", "ranges", numbers=[*_SUBNETS.values()])
    table.add_column("")
    for each in needs:
        ranges = ", ".join(f"{count} x {mask}" for mask, count in each.ranges.items())
        cells = (cell(each.figures.get(key), places=1 if key == "full" else 0) for key in _SUBNETS)
        skew = {None: "", True: "held", False: "too many"}
        table.add_row(each.kind, each.zone, ranges, *cells, skew[each.holds_skew])
    return table


def _control_plane(needs: ControlPlaneNeeds, box: Box) -> Table:
    table = _table(box, "control plane", numbers=("needed", needs.tier))
    for key, limit, title in _CONTROL_PLANE:
        own = needs.figures[limit]
        has = "not fixed" if own.value is None else cell(own, places=0)
        table.add_row(title, cell(needs.figures[key], places=2), has)
    return table


def _load(rows: Sequence[LoadNeed], box: Box) -> Table:
    titles = ("the control plane carries", "")
    table = _table(box, *titles, numbers=("planned", "published or quota"))
    table.add_column("")
    for row in rows:
        places = 1 if row.needed.unit != "GB" else 2
        limit = "" if row.most is None else number(row.most, places=0)
        planned = f"{cell(row.needed, places=places)} {row.needed.unit}"
        table.add_row(row.group, row.name, planned, limit, _plain(_load_state(row), box))
    return table


def _load_state(row: LoadNeed) -> str:
    if row.state == "agreed" and row.agreed is not None:
        return f"agreed: {number(row.agreed.value, places=0)}, {row.agreed.reference}"
    return _LOAD_STATES[row.state]


def _launch(figures: Figures, box: Box) -> Table:
    table = _table(box, "launch of all nodes", numbers=("at best",))
    table.add_column("")
    for key, (unit, title) in _LAUNCH.items():
        table.add_row(title, cell(figures[key], places=1), unit)
    return table


def _placement(placement: PlacementPlan, box: Box) -> Table:
    titles = ("pods", "tier", "tried in groups", "placements", "seconds")
    table = _table(box, "gang by network layer", numbers=titles)
    table.add_column("measured")
    for gang in placement.gangs:
        counts = (gang.pods, gang.tier, gang.groups, gang.placements, gang.seconds)
        table.add_row(
            gang.gang,
            *(number(count, places=0) for count in counts),
            gang.measured if gang.aware else f"{gang.measured}; placed without its topology",
        )
    return table


def _checkpoints(rows: Sequence[CheckpointNeeds], box: Box) -> Table:
    table = _table(box, "checkpoints of", "model", "place", numbers=[*_CHECKPOINTS.values()])
    for row in rows:
        cells = (_checkpoint_cell(key, row.figures[key]) for key in _CHECKPOINTS)
        table.add_row(row.subject, row.model, row.place or "none", *cells)
    return table


def _checkpoint_cell(key: str, figure: Figure) -> str:
    if figure.value is None:
        return "unknown"
    if figure.unit == "seconds":
        return span(figure.value)
    return number(figure.value, places=1 if key in ("gb_per_second", "lost_percent") else 0)


def _queues(needs: QueueNeeds, box: Box) -> Table:
    titles = ("tried as", "guaranteed", "at most", "sum")
    table = _table(box, "nodes of pool", "counted in", "queue", numbers=titles)
    for flavor in needs.flavors:
        nodes = f"{flavor.pool}, by topology" if flavor.by_topology else flavor.pool
        for share in flavor.shares:
            counts = (share.tried, share.guaranteed, share.most)
            numbers = [number(count, places=0) for count in counts]
            table.add_row(nodes, flavor.resource, share.queue, *numbers, "")
        own = [number(count, places=0) for count in (flavor.shared, flavor.nodes)]
        table.add_row(nodes, flavor.resource, "shared", "", own[0], "", own[1])
    table.add_row("all pools in queues", "", "", "", "", "", number(needs.nodes, places=0))
    for pool, nodes in needs.unqueued.items():
        table.add_row(pool, "", "none", "", "", "", number(nodes, places=0))
    return table


def _services(rows: Sequence[ServiceNeeds], box: Box) -> Table:
    titles = [title for title, _ in _SERVICES.values()]
    models = any("weights_gb" in row.figures for row in rows)
    of_models = _MODELS if models else ()
    table = _table(box, "service", "on", numbers=[*titles, "tokens/s", "of a node", *of_models])
    for row in rows:
        cells = [_from_to(row, key, places) for key, (_, places) in _SERVICES.items()]
        speed = row.figures["tokens_per_second"]
        cells.append("" if speed.value is None else cell(speed, places=1))
        cells.append(cell(row.figures["share"], places=2))
        cells += _of_model(row.figures) if models else ()
        table.add_row(row.service, ", ".join(row.pools), *cells)
    return table


def _of_model(figures: Figures) -> Sequence[str]:
    """Return size, memory and start of the model of a service; nothing without one."""
    if "weights_gb" not in figures:
        return [""] * len(_MODELS)
    needed, device = (cell(figures[key], places=1) for key in ("device_gib_needed", "device_gib"))
    load, cold = figures["load_seconds"].value, figures["cold_start_seconds"].value
    return (
        cell(figures["weights_gb"], places=1),
        f"{needed} of {device}",
        cell(figures["sequences"], places=1),
        "" if load is None else span(load),
        "" if cold is None else span(cold),
    )


def _from_to(row: ServiceNeeds, key: str, places: int) -> str:
    """Return a number at the fewest replicas and at the most; nothing where nobody stated it."""
    least, most = row.figures[f"{key}_least"], row.figures[f"{key}_most"]
    if "tokens" in key and row.figures["tokens_per_second"].value is None:
        return ""
    cells = [cell(each, places=places) for each in (least, most)]
    text = cells[0] if cells[0] == cells[1] else " to ".join(cells)
    return f"at most {text}" if row.is_bound and "usd" in key else text


def _calendar(windows: Sequence[WindowNeeds], box: Box) -> Table:
    times = ("starts (UTC)", "drained", "ends")
    table = _table(box, "window", "of", *times, numbers=("usable hours", "drain min"))
    table.add_column("")
    for window in windows:
        moments = (window.starts, window.usable_until, window.ends)
        table.add_row(
            window.pool,
            window.purchase,
            *(f"{moment:%Y-%m-%d %H:%M}" for moment in moments),
            cell(window.figures["usable_hours"], places=1),
            cell(window.figures["drain_minutes"], places=0),
            _window_state(window),
        )
    return table


def _repairs(repairs: Sequence[RepairPlan], box: Box) -> Table:
    table = _table(box, "broken nodes", "repair", "decided by", "what one meets", "reserved slot")
    for each in repairs:
        table.add_row(each.pool, each.action, each.decided_by or "nobody", each.meets, each.slot)
    return table


def _access(entries: Sequence[AccessEntryPlan], box: Box) -> Table:
    table = _table(box, "role with access", "policy of EKS", "in", "queues of its jobs")
    for entry in entries:
        for policy in entry.policies:
            table.add_row(
                entry.role,
                policy.name,
                ", ".join(policy.namespaces) or "the whole cluster",
                ", ".join(policy.sends_to) or "sends none",
            )
    return table


def _callers(callers: IdentityPlan, box: Box) -> Table:
    table = _table(box, "caller of the backend", "may submit", "of", "up to", "sees and cancels")
    for name in callers.admins:
        table.add_row(_plain(name, box), "everything", "every template", "every priority", "all")
    for right in callers.rights:
        table.add_row(
            _plain(right.group, box),
            " and ".join(right.kinds),
            ", ".join(right.templates),
            right.priority or "no priority",
            "its own",
        )
    return table


def _keys(policies: Sequence[KeyPolicyPlan], box: Box) -> Table:
    table = _table(box, "key of", "used by", "through", "actions", "without it")
    for policy in policies:
        for access in policy.accesses:
            actions = [each.removeprefix("kms:") for each in access.actions]
            table.add_row(
                " and ".join(policy.uses),
                _plain(access.who, box),
                "" if access.via is None else access.via.partition(".")[0],
                _plain(", ".join([*actions, *(["CreateGrant"] if access.grants else [])]), box),
                access.does,
            )
    return table


def _storage(tasks: Sequence[StorageNeed], box: Box) -> Table:
    table = _table(box, "existing storage", "is", "its owner", "does", "because")
    for task in tasks:
        owner = "this account's" if task.owner is None else task.owner
        table.add_row(task.name, task.resource, owner, task.need, task.why)
    return table


def _window_state(window: WindowNeeds) -> str:
    ahead, left = window.figures.get("hours_ahead"), window.figures.get("hours_left")
    if ahead is not None:
        return f"starts in {cell(ahead, places=1)} hours"
    if left is not None:
        return f"running, {cell(left, places=1)} usable hours left"
    return window.state or ""


def _money(money: MoneyNeeds, pools: Sequence[PoolNeeds], box: Box) -> Table:
    table = _table(box, "pool", "bought as", numbers=("On-Demand USD/h", "as bought USD/h"))
    table.add_column("costs less than On-Demand where")
    for each, pool in zip(money.pools, pools, strict=True):
        own = cell(pool.figures[MONEY[0]], places=2)
        table.add_row(
            each.pool,
            each.purchase,
            cell(each.figures["on_demand_usd_per_hour"], places=2),
            f"at most {own}" if each.purchase == "spot" and own != "unknown" else own,
            each.holds_when,
        )
    table.add_row("total", "", cell(money.figures["on_demand_usd_per_hour"], places=2), "", "")
    return table


def _items(items: Sequence[MoneyItem], box: Box) -> Table:
    titles = ("quantity", "unit price", "USD/hour", "USD/month")
    table = _table(box, "beside nodes", "paid", numbers=titles)
    table.add_column("priced on")
    for item in items:
        price = "unknown" if item.unit_price is None else f"{item.unit_price:g} / {item.unit}"
        by_use = item.kind == "usage" and item.quantity is None
        sums = [
            "by use" if by_use else cell(figure, places=places)
            for figure, places in ((item.usd_per_hour, 2), (item.usd_per_month, 0))
        ]
        quantity = "" if item.quantity is None else number(item.quantity, places=1)
        day = "" if item.valid_on is None else str(item.valid_on)
        table.add_row(item.name, item.kind, quantity, price, *sums, day)
    return table
