"""Tables of the report, the same for the page and for Markdown."""

from ultrascale.plan.model import ClusterNeeds
from ultrascale.report.markup import shown, shown_time, shown_usd
from ultrascale.report.table import (
    Cell,
    Column,
    Row,
    Table,
    daily_total,
    figure,
    number_column,
    short_column,
    text_column,
    total_label,
)
from ultrascale.report.words import PURCHASES, SUBNETS, purchase_of


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
    totals = tuple(
        (figure(f"totals.{key}", needs.totals[key], usd=key == "usd_per_hour"),) for key in keys
    )
    blank: Cell = ("",)
    rows.append(Row(cells=((total_label(needs),), blank, blank, blank, blank, *totals)))
    return Table(
        caption="Pools at their full size; money is of nodes alone, as the file buys them.",
        columns=(
            *map(text_column, ("pool", "bought as", "launched by")),
            *(Column(title=title, is_list=True) for title in ("instance types", "zones")),
            *map(number_column, ("nodes", "vCPUs", "accelerators", "EFA", "USD/hour")),
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
            *map(short_column, ("subnets", "zone")),
            Column(title="ranges", is_wide=True),
            *map(number_column, ("addresses", "needed", "free", "nodes", "nodes at most")),
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
            *map(short_column, ("pool", "bought as", "starts", "drained from", "ends")),
            *map(number_column, ("usable hours", "drain minutes")),
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
        rows.append(Row(cells=((starts,), (ends,), (daily_total(needs, index),), (parts,))))
    return Table(
        caption="Cost a day between any two changes of a window, at full size.",
        columns=(
            *map(text_column, ("from", "to")),
            number_column("USD a day"),
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
        columns=(*map(short_column, ("part", "bought as")), number_column("USD a day")),
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
            text_column("of"),
            short_column("paid"),
            number_column("USD/month"),
            Column(title="sum", is_wide=True),
            short_column("price of"),
        ),
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
            text_column("part"),
            number_column("time"),
            short_column("unit"),
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
            text_column("gang"),
            *map(number_column, ("pods", "groups tried", "placements", "seconds")),
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
            *map(text_column, ("nodes of pool", "queue")),
            *map(number_column, ("tried as", "guaranteed", "at most", "sum")),
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
            *map(text_column, ("service", "on")),
            *map(
                number_column,
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
            short_column("counts"),
        ),
        rows=tuple(rows),
    )


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
