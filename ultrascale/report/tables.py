"""Tables of the report, the same for the page and for Markdown."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ultrascale.plan.model import ClusterNeeds, Figure, LoadNeed, QuotaNeed
from ultrascale.report.markup import Content, Shown, shown, shown_time, shown_usd
from ultrascale.report.words import LOAD_STATES, PURCHASES, QUOTA_STATES, SUBNETS, purchase_of

Cell = tuple[Content, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table.

    Attributes:
        title: Its title.
        is_number: Whether it holds numbers, which are set to the right.
        is_wide: Whether it holds sentences.
        is_short: Whether it holds a few words, which stay on one line.
        is_list: Whether it holds names, of which each stays on one line.
        is_state: Whether it holds states, in a tone.
    """

    title: str
    is_number: bool = False
    is_wide: bool = False
    is_short: bool = False
    is_list: bool = False
    is_state: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of a table.

    Attributes:
        cells: As many as the table has columns.
        tone: Tone of its state: `good`, `warn`, `bad` or `plain`.
        share: Part of a limit that it takes; None where there is none.
    """

    cells: tuple[Cell, ...]
    tone: str = "plain"
    share: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table.

    Attributes:
        caption: What it holds, in one sentence.
        columns: Its columns; the first names the row.
        rows: Its rows.
        last_is_total: Whether the last row is the sum of the others.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    last_is_total: bool = False


def _column(title: str) -> Column:
    return Column(title=title)


def _short(title: str) -> Column:
    return Column(title=title, is_short=True)


def _number(title: str) -> Column:
    return Column(title=title, is_number=True)


def figure(
    at: str, own: Figure | None, *, places: int = 0, usd: bool = False, is_bound: bool = True
) -> Content:
    """Return a figure of the plan as a cell, with the part that it lacks said in words.

    Args:
        at: Its place in the JSON.
        own: The figure.
        places: Decimal places.
        usd: Whether it is money.
        is_bound: Whether a sum that lacks parts is at least what is known of it: not where Spot is
            counted at the most that it costs.
    """
    if own is None:
        return ""
    path = f"{at}.value"
    cell = shown_usd(path, own.value) if usd else shown(path, own.value, places=places)
    if own.value is not None and own.without:
        count = len(own.without)
        lacking = f"{cell.text} without {count} part{'s' * (count != 1)}"
        known = f"over {cell.text}" if is_bound else lacking
        return Shown(cell.path, cell.value, known if own.value else "unknown")
    return cell


def pools_table(needs: ClusterNeeds) -> Table:
    """Return the pools, with what they need at full size."""
    keys = ("nodes", "vcpus", "accelerators", "efa_interfaces", "usd_per_hour")
    rows: list[Row] = []
    for index, (pool, part) in enumerate(zip(needs.pools, needs.topology.pools, strict=True)):
        at = f"pools.{index}.figures"
        figures = tuple(
            (figure(f"{at}.{key}", pool.figures[key], usd=key == "usd_per_hour"),) for key in keys
        )
        words = (
            (pool.pool,),
            (purchase_of(part),),
            (part.provisioner,),
            (", ".join(part.instance_types),),
            (", ".join(part.zones),),
        )
        rows.append(Row(cells=(*words, *figures)))
    is_bound = not needs.money.spot_at_on_demand
    totals = tuple(
        (
            figure(
                f"totals.{key}",
                needs.totals[key],
                usd=key == "usd_per_hour",
                is_bound=is_bound or key != "usd_per_hour",
            ),
        )
        for key in keys
    )
    blank: Cell = ("",)
    rows.append(Row(cells=(("total",), blank, blank, blank, blank, *totals)))
    return Table(
        caption="Pools at their full size; money is of nodes alone, as the file buys them.",
        columns=(
            *map(_column, ("pool", "bought as", "launched by")),
            *(Column(title=title, is_list=True) for title in ("instance types", "zones")),
            *map(_number, ("nodes", "vCPUs", "accelerators", "EFA", "USD/hour")),
        ),
        rows=tuple(rows),
        last_is_total=True,
    )


def subnets_table(needs: ClusterNeeds) -> Table:
    """Return the subnets, with what is free in them."""
    rows: list[Row] = []
    for index, subnets in enumerate(needs.subnets):
        at, own = f"subnets.{index}.figures", subnets.figures
        used, whole = own["addresses_needed"].value or 0, own["addresses"].value or 1
        keys = ("addresses", "addresses_needed", "addresses_free", "nodes", "nodes_most")
        figures = tuple((figure(f"{at}.{key}", own.get(key)),) for key in keys)
        names = ((SUBNETS[subnets.kind],), (subnets.zone,), (", ".join(subnets.cidrs),))
        rows.append(Row(cells=(*names, *figures), share=used / whole))
    return Table(
        caption="Subnets of each kind and zone, held against all nodes at full size.",
        columns=(
            *map(_short, ("subnets", "zone")),
            Column(title="ranges", is_wide=True),
            *map(_number, ("addresses", "needed", "free", "nodes", "nodes at most")),
        ),
        rows=tuple(rows),
    )


def calendar_table(needs: ClusterNeeds) -> Table:
    """Return the windows of reserved capacity."""
    rows: list[Row] = []
    for index, window in enumerate(needs.calendar):
        at = f"calendar.{index}"
        cells: tuple[Cell, ...] = (
            (window.pool,),
            (PURCHASES.get(window.purchase, window.purchase),),
            (shown_time(f"{at}.starts", window.starts),),
            (shown_time(f"{at}.usable_until", window.usable_until),),
            (shown_time(f"{at}.ends", window.ends),),
            (figure(f"{at}.figures.usable_hours", window.figures["usable_hours"], places=1),),
            (figure(f"{at}.figures.drain_minutes", window.figures["drain_minutes"]),),
            (window.note or window.state or "",),
        )
        rows.append(Row(cells=cells))
    return Table(
        caption="Windows of Capacity Blocks and training plans, in UTC.",
        columns=(
            *map(_short, ("pool", "bought as", "starts", "drained from", "ends")),
            *map(_number, ("usable hours", "drain minutes")),
            Column(title="state", is_wide=True),
        ),
        rows=tuple(rows),
    )


def steps_table(needs: ClusterNeeds) -> Table:
    """Return the cost a day between any two changes."""
    rows: list[Row] = []
    for index, step in enumerate(needs.spend.steps):
        at = f"spend.steps.{index}"
        starts = "every day" if step.starts is None else shown_time(f"{at}.starts", step.starts)
        ends = "" if step.ends is None else shown_time(f"{at}.ends", step.ends)
        parts = ", ".join(step.usd_per_day) or "nothing of a known price"
        total = shown_usd(f"{at}.total_usd_per_day", step.total_usd_per_day)
        rows.append(Row(cells=((starts,), (ends,), (total,), (parts,))))
    return Table(
        caption="Cost a day between any two changes of a window, at full size.",
        columns=(
            *map(_column, ("from", "to")),
            _number("USD a day"),
            Column(title="of", is_wide=True),
        ),
        rows=tuple(rows),
    )


def parts_table(needs: ClusterNeeds) -> Table:
    """Return what each part costs a day while it is there."""
    rows = [
        Row(
            cells=(
                (part.name,),
                (PURCHASES.get(part.purchase or "", "beside nodes"),),
                (shown_usd(f"spend.parts.{index}.usd_per_day", part.usd_per_day),),
            )
        )
        for index, part in enumerate(needs.spend.parts)
    ]
    return Table(
        caption="What each part costs a day, while it is there.",
        columns=(*map(_short, ("part", "bought as")), _number("USD a day")),
        rows=tuple(rows),
    )


def items_table(needs: ClusterNeeds) -> Table:
    """Return what stands beside nodes, with the price of each thing and its sum."""
    rows: list[Row] = []
    for index, item in enumerate(needs.money.items):
        at = f"money.items.{index}"
        cells: tuple[Cell, ...] = (
            (item.name,),
            ("while it stands" if item.kind == "baseline" else "by use, in no sum",),
            (figure(f"{at}.usd_per_month", item.usd_per_month, usd=True),),
            (item.usd_per_hour.formula,),
            ("" if item.valid_on is None else item.valid_on.isoformat(),),
        )
        rows.append(Row(cells=cells))
    return Table(
        caption="What is paid beside nodes, with the sum of an hour.",
        columns=(
            _column("of"),
            _short("paid"),
            _number("USD/month"),
            Column(title="sum", is_wide=True),
            _short("price of"),
        ),
        rows=tuple(rows),
    )


def tier_table(needs: ClusterNeeds) -> Table:
    """Return what the control plane is asked for, beside what its tier has."""
    own = needs.control_plane
    lines = (
        ("pods scheduled a second, one for each node", "pods_per_second", "tier_pods_per_second"),
        ("API seats, of writes alone", "write_seats", "tier_api_seats"),
        ("GB stored, one pod of a job on each node", "database", "tier_database"),
        ("GB stored, every node full of pods", "database_most", "tier_database"),
    )
    rows: list[Row] = []
    for words, key, limit in lines:
        at, needed, most = "control_plane.figures", own.figures[key], own.figures[limit]
        has: Content = (
            Shown(f"{at}.{limit}.value", None, "not fixed")
            if most.value is None
            else figure(f"{at}.{limit}", most)
        )
        share = None if not most.value else (needed.value or 0) / most.value
        tone = "plain" if share is None else "bad" if share > 1 else "good"
        cells = ((words,), (figure(f"{at}.{key}", needed, places=2),), (has,))
        rows.append(Row(cells=cells, tone=tone, share=share))
    return Table(
        caption=f"What the tier {own.tier} is asked for, beside what it has.",
        columns=(_column("need"), _number("needed"), _number(own.tier)),
        rows=tuple(rows),
    )


def launch_table(needs: ClusterNeeds) -> Table:
    """Return how long the launch of all nodes takes, at best."""
    lines = (
        ("RunInstances, as throttled by default", "run_instances_minutes", "minutes"),
        ("the same by the rate that AWS measured", "measured_minutes", "minutes"),
        ("a pod for each node is scheduled", "binding_seconds", "seconds"),
        ("ECR answers for one image on each node", "image_pull_seconds", "seconds"),
        ("to the first step, one after the other", "minutes_to_first_step", "minutes"),
    )
    return Table(
        caption="Time in which all nodes are launched, at best.",
        columns=(
            _column("part"),
            _number("time"),
            _short("unit"),
            Column(title="sum", is_wide=True),
        ),
        rows=tuple(
            Row(
                cells=(
                    (words,),
                    (figure(f"launch.{key}", needs.launch[key], places=1),),
                    (unit,),
                    (needs.launch[key].formula,),
                )
            )
            for words, key, unit in lines
        ),
    )


def placement_table(needs: ClusterNeeds) -> Table:
    """Return how long gangs take to be placed by network topology; no rows where they are not."""
    gangs = needs.placement.gangs if needs.placement is not None else ()
    rows: list[Row] = []
    for index, gang in enumerate(gangs):
        at = f"placement.gangs.{index}"
        cells: tuple[Cell, ...] = (
            (gang.gang,),
            (shown(f"{at}.pods", gang.pods),),
            (shown(f"{at}.groups", gang.groups),),
            (shown(f"{at}.placements", gang.placements),),
            (shown(f"{at}.seconds", gang.seconds, places=1),),
            (gang.measured if gang.aware else f"{gang.measured}; placed without its topology",),
        )
        rows.append(Row(cells=cells))
    return Table(
        caption="Time in which the scheduler places a gang by network topology.",
        columns=(
            _column("gang"),
            *map(_number, ("pods", "groups tried", "placements", "seconds")),
            Column(title="measured", is_wide=True),
        ),
        rows=tuple(rows),
    )


def queues_table(needs: ClusterNeeds) -> Table:
    """Return who is guaranteed which nodes, and who may borrow them; no rows without Kueue."""
    flavors = needs.queues.flavors if needs.queues is not None else ()
    rows: list[Row] = []
    for index, flavor in enumerate(flavors):
        at = f"queues.flavors.{index}"
        nodes: Cell = (f"{flavor.pool}, by topology" if flavor.by_topology else flavor.pool,)
        for number, share in enumerate(flavor.shares):
            own = f"{at}.shares.{number}"
            cells = (
                (shown(f"{own}.tried", share.tried),),
                (shown(f"{own}.guaranteed", share.guaranteed),),
                (shown(f"{own}.most", share.most),),
            )
            rows.append(Row(cells=(nodes, (share.queue,), *cells, ("",))))
        left, total = shown(f"{at}.shared", flavor.shared), shown(f"{at}.nodes", flavor.nodes)
        rows.append(Row(cells=(nodes, ("shared",), ("",), (left,), ("",), (total,))))
    return Table(
        caption="Nodes that queues are guaranteed, and the most that they may use with what others "
        "leave idle.",
        columns=(
            *map(_column, ("nodes of pool", "queue")),
            *map(_number, ("tried as", "guaranteed", "at most", "sum")),
        ),
        rows=tuple(rows),
    )


def services_table(needs: ClusterNeeds) -> Table:
    """Return nodes and money of the services; no rows without any."""
    rows: list[Row] = []
    for index, service in enumerate(needs.services):
        at, own = f"services.{index}.figures", service.figures
        keys = (
            ("replicas_least", 0, False),
            ("replicas_most", 0, False),
            ("nodes_most", 0, False),
            ("usd_per_hour_least", 0, True),
            ("usd_per_hour_most", 0, True),
            ("tokens_per_second", 1, False),
            ("usd_per_million_tokens_least", 0, True),
            ("usd_per_million_tokens_most", 0, True),
        )
        unstated = own["tokens_per_second"].value is None
        figures = tuple(
            ("",)
            if unstated and "tokens" in key
            else (figure(f"{at}.{key}", own[key], places=places, usd=usd),)
            for key, places, usd in keys
        )
        money = "Spot at the On-Demand price" if service.is_bound else ""
        names = ((service.service,), (", ".join(service.pools),))
        rows.append(Row(cells=(*names, *figures, (money,))))
    return Table(
        caption="Services with their fewest and their most replicas; money is of whole nodes, and "
        "a million tokens cost that much while all replicas are fully used.",
        columns=(
            *map(_column, ("service", "on")),
            *map(
                _number,
                (
                    "fewest replicas",
                    "most",
                    "nodes",
                    "USD/hour at fewest",
                    "at most",
                    "tokens/s a replica",
                    "USD/1M tokens at fewest",
                    "at most",
                ),
            ),
            _short("counts"),
        ),
        rows=tuple(rows),
    )


def load_table(needs: ClusterNeeds, *, judged: bool) -> Table:
    """Return what the control plane carries.

    Args:
        needs: The cluster.
        judged: Whether it holds the rows that somebody published a limit of, or the others.
    """
    rows = [
        _load_row(index, row)
        for index, row in enumerate(needs.load)
        if (row.state != "unpublished") == judged
    ]
    columns = (
        _short("group"),
        _column("load"),
        _number("planned"),
        _short("unit"),
        *((_number("published or quota"), Column(title="", is_state=True)) if judged else ()),
    )
    caption = (
        "Load of the control plane that somebody has published, or that a quota bounds."
        if judged
        else "Load of the control plane by its origin; nobody publishes a limit of these."
    )
    return Table(caption=caption, columns=columns, rows=tuple(rows))


def _load_row(index: int, row: LoadNeed) -> Row:
    at = f"load.{index}"
    places = 2 if row.needed.unit == "GB" else 1
    tone, words = LOAD_STATES[row.state]
    cells: list[Cell] = [
        (row.group,),
        (row.name,),
        (figure(f"{at}.needed", row.needed, places=places),),
        (row.needed.unit,),
    ]
    if row.state != "unpublished":
        cells.append((shown(f"{at}.most", row.most) if row.most is not None else "",))
        cells.append((*_agreed(f"{at}.agreed", row, words),))
    share = None if not row.most else (row.needed.value or 0) / row.most
    return Row(cells=tuple(cells), tone=tone, share=share)


def quotas_table(needs: ClusterNeeds, *, to_raise: bool) -> Table:
    """Return the quotas: needed, beside the default.

    Args:
        needs: The cluster.
        to_raise: Whether it holds those that ask for something, or the others.
    """
    quiet = ("within", "agreed")
    rows = [
        _quota_row(index, need)
        for index, need in enumerate(needs.quotas)
        if (need.state not in quiet) == to_raise
    ]
    table = Table(
        caption="Quotas to raise, or to look up." if to_raise else "Quotas that hold the cluster.",
        columns=(
            Column(title="quota", is_wide=True),
            _short("code"),
            *map(_number, ("needed", "default", "AWS grants at most")),
            Column(title="", is_state=True),
            *((Column(title="what to do", is_wide=True),) if to_raise else ()),
        ),
        rows=tuple(rows),
    )
    return _without_empty_columns(table)


def _without_empty_columns(table: Table) -> Table:
    kept = [
        place
        for place, column in enumerate(table.columns)
        if column.is_state or any(row.cells[place] not in ((), ("",)) for row in table.rows)
    ]
    return replace(
        table,
        columns=tuple(table.columns[place] for place in kept),
        rows=tuple(
            replace(row, cells=tuple(row.cells[place] for place in kept)) for row in table.rows
        ),
    )


def _quota_row(index: int, need: QuotaNeed) -> Row:
    at = f"quotas.{index}"
    tone, words = QUOTA_STATES[need.state]
    limits: list[Cell] = [
        (shown(f"{at}.{key}", value) if value is not None else "",)
        for key, value in (("default", need.default), ("most", need.most))
    ]
    cells: tuple[Cell, ...] = (
        (need.name,),
        (need.code or "",),
        (figure(f"{at}.needed", need.needed, places=1),),
        *limits,
        (*_agreed(f"{at}.agreed", need, words),),
    )
    if need.state not in ("within", "agreed"):
        cells = (*cells, (need.advice or "",))
    share = None if not need.default else (need.needed.value or 0) / need.default
    return Row(cells=cells, tone=tone, share=share)


def _agreed(at: str, need: QuotaNeed | LoadNeed, words: str) -> Iterator[Content]:
    yield words
    if need.agreed is not None:
        yield ": "
        yield shown(f"{at}.value", need.agreed.value)
        yield f", {' '.join(need.agreed.reference.split())}"


def decisions_table(needs: ClusterNeeds) -> Table:
    """Return what was decided, and why."""
    return Table(
        caption="What the file leaves open, and how it was decided.",
        columns=(
            Column(title="of", is_wide=True),
            Column(title="decision", is_wide=True),
            Column(title="reason", is_wide=True),
        ),
        rows=tuple(
            Row(cells=((", ".join(each.subjects),), (each.choice,), (each.reason,)))
            for each in needs.decisions
        ),
    )
