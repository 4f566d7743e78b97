"""Tables of the report: pools, subnets, calendar, cost, load, quotas, services and decisions."""

from collections.abc import Iterator

from ultrascale.plan.model import ClusterNeeds, LoadNeed, QuotaNeed
from ultrascale.report.figures import (
    Content,
    Datum,
    daily_total,
    dollars_at,
    figure_at,
    figures_at,
    number_at,
    time_at,
    total_label,
)
from ultrascale.report.rows import Row, Table, columns, row
from ultrascale.report.words import LOAD_STATES, PURCHASES, QUOTA_STATES, SUBNETS, purchase_of

_QUIET = ("within", "agreed")


def pools_table(needs: ClusterNeeds) -> Table:
    """Return the pools, with what they need at full size."""
    keys = ("nodes", "vcpus", "accelerators", "efa_interfaces", "usd_per_hour")
    rows = [
        row(
            pool.pool,
            purchase_of(part),
            part.provisioner,
            ", ".join(part.instance_types),
            ", ".join(part.zones),
            *figures_at(f"pools.{index}.figures", pool.figures, *keys),
        )
        for index, (pool, part) in enumerate(zip(needs.pools, needs.topology.pools, strict=True))
    ]
    total = row(total_label(needs), "", "", "", "", *figures_at("totals", needs.totals, *keys))
    return Table(
        caption="Pools at their full size; money is of nodes alone, as the file buys them.",
        columns=(
            *columns("words", "pool", "bought as", "launched by"),
            *columns("names", "instance types", "zones"),
            *columns("number", "nodes", "vCPUs", "accelerators", "EFA", "USD/hour"),
        ),
        rows=(*rows, total),
        last_is_total=True,
    )


def subnets_table(needs: ClusterNeeds) -> Table:
    """Return the subnets, with what is free in them."""
    keys = ("addresses", "addresses_needed", "addresses_free", "nodes", "nodes_most")
    return Table(
        caption="Subnets of each kind and zone, held against all nodes at full size.",
        columns=(
            *columns("short", "subnets", "zone"),
            *columns("sentences", "ranges"),
            *columns("number", "addresses", "needed", "free", "nodes", "nodes at most"),
        ),
        rows=tuple(
            row(
                SUBNETS[subnets.kind],
                subnets.zone,
                ", ".join(subnets.cidrs),
                *figures_at(f"subnets.{index}.figures", subnets.figures, *keys),
            )
            for index, subnets in enumerate(needs.subnets)
        ),
    )


def calendar_table(needs: ClusterNeeds) -> Table:
    """Return the windows of reserved capacity."""
    return Table(
        caption="Windows of Capacity Blocks and training plans, in UTC.",
        columns=(
            *columns("short", "pool", "bought as", "starts", "drained from", "ends"),
            *columns("number", "usable hours", "drain minutes"),
            *columns("sentences", "state"),
        ),
        rows=tuple(
            row(
                window.pool,
                PURCHASES.get(window.purchase, window.purchase),
                time_at(f"calendar.{index}.starts", window.starts),
                time_at(f"calendar.{index}.usable_until", window.usable_until),
                time_at(f"calendar.{index}.ends", window.ends),
                *figures_at(f"calendar.{index}.figures", window.figures, "usable_hours", places=1),
                *figures_at(f"calendar.{index}.figures", window.figures, "drain_minutes"),
                window.note or window.state or "",
            )
            for index, window in enumerate(needs.calendar)
        ),
    )


def steps_table(needs: ClusterNeeds) -> Table:
    """Return the cost a day between any two changes."""
    rows: list[Row] = []
    for index, step in enumerate(needs.spend.steps):
        at = f"spend.steps.{index}"
        starts = "every day" if step.starts is None else time_at(f"{at}.starts", step.starts)
        ends = "" if step.ends is None else time_at(f"{at}.ends", step.ends)
        parts = ", ".join(step.usd_per_day) or "nothing of a known price"
        rows.append(row(starts, ends, daily_total(needs, index), parts))
    return Table(
        caption="Cost a day between any two changes of a window, at full size.",
        columns=(
            *columns("words", "from", "to"),
            *columns("number", "USD a day"),
            *columns("sentences", "of"),
        ),
        rows=tuple(rows),
    )


def parts_table(needs: ClusterNeeds) -> Table:
    """Return what each part costs a day while it is there."""
    return Table(
        caption="What each part costs a day, while it is there.",
        columns=(*columns("short", "part", "bought as"), *columns("number", "USD a day")),
        rows=tuple(
            row(
                part.name,
                PURCHASES.get(part.purchase or "", "beside nodes"),
                dollars_at(f"spend.parts.{index}.usd_per_day", part.usd_per_day),
            )
            for index, part in enumerate(needs.spend.parts)
        ),
    )


def items_table(needs: ClusterNeeds) -> Table:
    """Return what stands beside nodes, with the price of each thing and its sum."""
    return Table(
        caption="What is paid beside nodes, with the sum of an hour.",
        columns=(
            *columns("words", "of"),
            *columns("short", "paid"),
            *columns("number", "USD/month"),
            *columns("sentences", "sum"),
            *columns("short", "price of"),
        ),
        rows=tuple(
            row(
                item.name,
                "while it stands" if item.kind == "baseline" else "by use, in no sum",
                figure_at(f"money.items.{index}.usd_per_month", item.usd_per_month),
                item.usd_per_hour.formula,
                "" if item.valid_on is None else item.valid_on.isoformat(),
            )
            for index, item in enumerate(needs.money.items)
        ),
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
            *columns("words", "part"),
            *columns("number", "time"),
            *columns("short", "unit"),
            *columns("sentences", "sum"),
        ),
        rows=tuple(
            row(
                words,
                figure_at(f"launch.{key}", needs.launch[key], places=1),
                unit,
                needs.launch[key].formula,
            )
            for words, key, unit in lines
        ),
    )


def placement_table(needs: ClusterNeeds) -> Table:
    """Return how long gangs take to be placed by network topology; no rows where they are not."""
    return Table(
        caption="Time in which the scheduler places a gang by network topology.",
        columns=(
            *columns("words", "gang"),
            *columns("number", "pods", "groups tried", "placements", "seconds"),
            *columns("sentences", "measured"),
        ),
        rows=tuple(
            row(
                gang.gang,
                number_at(f"placement.gangs.{index}.pods", gang.pods),
                number_at(f"placement.gangs.{index}.groups", gang.groups),
                number_at(f"placement.gangs.{index}.placements", gang.placements),
                number_at(f"placement.gangs.{index}.seconds", gang.seconds, places=1),
                gang.measured if gang.aware else f"{gang.measured}; placed without its topology",
            )
            for index, gang in enumerate(needs.placement.gangs if needs.placement else ())
        ),
    )


def queues_table(needs: ClusterNeeds) -> Table:
    """Return who is guaranteed which nodes, and who may borrow them; no rows without Kueue."""
    rows: list[Row] = []
    for index, flavor in enumerate(needs.queues.flavors if needs.queues else ()):
        at = f"queues.flavors.{index}"
        nodes = f"{flavor.pool}, by topology" if flavor.by_topology else flavor.pool
        rows += [
            row(
                nodes,
                share.queue,
                number_at(f"{at}.shares.{place}.tried", share.tried),
                number_at(f"{at}.shares.{place}.guaranteed", share.guaranteed),
                number_at(f"{at}.shares.{place}.most", share.most),
                "",
            )
            for place, share in enumerate(flavor.shares)
        ]
        shared = number_at(f"{at}.shared", flavor.shared)
        rows.append(row(nodes, "shared", "", shared, "", number_at(f"{at}.nodes", flavor.nodes)))
    return Table(
        caption="Nodes that queues are guaranteed, and the most that they may use with what others "
        "leave idle.",
        columns=(
            *columns("words", "nodes of pool", "queue"),
            *columns("number", "tried as", "guaranteed", "at most", "sum"),
        ),
        rows=tuple(rows),
    )


def services_table(needs: ClusterNeeds) -> Table:
    """Return nodes and money of the services; no rows without any."""
    rows: list[Row] = []
    for index, service in enumerate(needs.services):
        at, own = f"services.{index}.figures", service.figures
        nodes = ("replicas_least", "replicas_most", "nodes_most")
        cells = figures_at(at, own, *nodes, "usd_per_hour_least", "usd_per_hour_most")
        tokens: list[Content] = ["", "", ""]
        if own["tokens_per_second"].value is not None:
            keys = ("usd_per_million_tokens_least", "usd_per_million_tokens_most")
            tokens = figures_at(at, own, "tokens_per_second", *keys, places=1)
        money = "Spot at the On-Demand price" if service.is_bound else ""
        rows.append(row(service.service, ", ".join(service.pools), *cells, *tokens, money))
    return Table(
        caption="Services with their fewest and their most replicas; money is of whole nodes, and "
        "a million tokens cost that much while all replicas are fully used.",
        columns=(
            *columns("words", "service", "on"),
            *columns("number", "fewest replicas", "most", "nodes", "USD/hour at fewest", "at most"),
            *columns("number", "tokens/s a replica", "USD/1M tokens at fewest", "at most"),
            *columns("short", "counts"),
        ),
        rows=tuple(rows),
    )


def decisions_table(needs: ClusterNeeds) -> Table:
    """Return what was decided, and why."""
    return Table(
        caption="What the file leaves open, and how it was decided.",
        columns=tuple(columns("sentences", "of", "decision", "reason")),
        rows=tuple(
            row(", ".join(decision.subjects), decision.choice, decision.reason)
            for decision in needs.decisions
        ),
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
        has = figure_at(f"{at}.{limit}", most)
        if most.value is None:
            has = Datum(f"{at}.{limit}.value", None, "not fixed")
        share = None if not most.value else (needed.value or 0) / most.value
        tone = "plain" if share is None else "bad" if share > 1 else "good"
        rows.append(
            row(words, figure_at(f"{at}.{key}", needed, places=2), has, tone=tone, share=share)
        )
    return Table(
        caption=f"What the tier {own.tier} is asked for, beside what it has.",
        columns=(*columns("words", "need"), *columns("number", "needed", own.tier)),
        rows=tuple(rows),
    )


def load_table(needs: ClusterNeeds, *, judged: bool) -> Table:
    """Return what the control plane carries.

    Args:
        needs: The cluster.
        judged: Whether it holds the rows that somebody published a limit of, or the others.
    """
    rows: list[Row] = []
    for index, need in enumerate(needs.load):
        if (need.state != "unpublished") != judged:
            continue
        at, (tone, words) = f"load.{index}", LOAD_STATES[need.state]
        needed = figure_at(f"{at}.needed", need.needed, places=2 if need.needed.unit == "GB" else 1)
        most = () if need.most is None else (number_at(f"{at}.most", need.most),)
        limits = (most, tuple(_state(f"{at}.agreed", need, words))) if judged else ()
        share = None if not need.most else (need.needed.value or 0) / need.most
        cells = (need.group, need.name, needed, need.needed.unit, *limits)
        rows.append(row(*cells, tone=tone, share=share))
    return Table(
        caption="Load of the control plane that somebody has published, or that a quota bounds."
        if judged
        else "Load of the control plane by its origin; nobody publishes a limit of these.",
        columns=(
            *columns("short", "group"),
            *columns("words", "load"),
            *columns("number", "planned"),
            *columns("short", "unit"),
            *((*columns("number", "published or quota"), *columns("state", "")) if judged else ()),
        ),
        rows=tuple(rows),
    )


def quotas_table(needs: ClusterNeeds, *, to_raise: bool) -> Table:
    """Return the quotas: needed, beside the default.

    Args:
        needs: The cluster.
        to_raise: Whether it holds those that ask for something, or the others.
    """
    rows: list[Row] = []
    for index, need in enumerate(needs.quotas):
        if (need.state in _QUIET) == to_raise:
            continue
        at, (tone, words) = f"quotas.{index}", QUOTA_STATES[need.state]
        limits = [
            () if value is None else (number_at(f"{at}.{key}", value),)
            for key, value in (("default", need.default), ("most", need.most))
        ]
        rows.append(
            row(
                need.name,
                need.code or (),
                figure_at(f"{at}.needed", need.needed, places=1),
                *limits,
                tuple(_state(f"{at}.agreed", need, words)),
                *((need.advice or (),) if to_raise else ()),
                tone=tone,
                share=None if not need.default else (need.needed.value or 0) / need.default,
            )
        )
    heads = (
        *columns("sentences", "quota"),
        *columns("short", "code"),
        *columns("number", "needed", "default", "AWS grants at most"),
        *columns("state", ""),
        *(columns("sentences", "what to do") if to_raise else ()),
    )
    kept = [
        place
        for place, column in enumerate(heads)
        if column.kind == "state" or any(line.cells[place] for line in rows)
    ]
    return Table(
        caption="Quotas to raise, or to look up." if to_raise else "Quotas that hold the cluster.",
        columns=tuple(heads[place] for place in kept),
        rows=tuple(
            line._replace(cells=tuple(line.cells[place] for place in kept)) for line in rows
        ),
    )


def _state(at: str, need: QuotaNeed | LoadNeed, words: str) -> Iterator[Content]:
    yield words
    if need.agreed is not None:
        yield ": "
        yield number_at(f"{at}.value", need.agreed.value)
        yield f", {' '.join(need.agreed.reference.split())}"
