"""All needs of a cluster at its full size: nodes, addresses, quotas, time and money."""

from collections.abc import Callable, Iterator, Mapping, Sized
from datetime import UTC, datetime

from ultrascale.catalog.prices import PriceList, catalog_prices
from ultrascale.core.table import all_parts
from ultrascale.plan.facts import facts_of
from ultrascale.plan.model import (
    ClusterNeeds,
    ClusterPlan,
    Figure,
    GangPlacement,
    QueueingPlan,
    Verdict,
)
from ultrascale.plan.needs.answer import plan_answer
from ultrascale.plan.needs.calendar import plan_calendar, window_rows
from ultrascale.plan.needs.checkpoints import plan_checkpoint_needs
from ultrascale.plan.needs.control_plane import plan_control_plane_needs, tier_rows
from ultrascale.plan.needs.decisions import plan_decisions
from ultrascale.plan.needs.existing_storage import plan_storage_needs
from ultrascale.plan.needs.launch import launch_rows, placement_rows, plan_launch, queue_rows
from ultrascale.plan.needs.load import load_rows, plan_load
from ultrascale.plan.needs.money import money_rows, plan_money
from ultrascale.plan.needs.pools import plan_pool_needs, plan_totals, pool_rows
from ultrascale.plan.needs.quotas import plan_quotas, quota_rows
from ultrascale.plan.needs.services import plan_service_needs, service_rows
from ultrascale.plan.needs.spend import part_rows, plan_spend, step_rows
from ultrascale.plan.needs.standing import item_rows
from ultrascale.plan.needs.subnets import plan_subnet_needs, subnet_rows
from ultrascale.plan.needs.tables import Line, Row, Table, number_at, table_of, words_table
from ultrascale.plan.needs.topology import plan_topology
from ultrascale.plan.network.policies import policy_remarks
from ultrascale.plan.network.vpc import address_remarks
from ultrascale.plan.pools.reservations import reservation_remarks

# --- Rows of roles in the cluster -----------------------------------------------------------------


def access_rows(needs: ClusterNeeds) -> Iterator[Row]:
    """Yield the roles that the file lets into the cluster, with their rights."""
    for index, entry in enumerate(needs.access):
        for place in range(len(entry.policies)):
            yield Row(f"access.{index}.policies.{place}", {"role": entry.role})


# --- All needs of a cluster at its full size: nodes, addresses, quotas, time and money ------------


MONEY = ("usd_per_hour", "usd_per_month")
_VERDICTS: Mapping[Verdict, str] = {
    "fits": "fits",
    "beyond": "does not fit what AWS publishes",
    "over": "does not fit: a window is over",
}
_ROWS: Mapping[str, Callable[[ClusterNeeds], Iterator[Row]]] = {
    "pools": pool_rows,
    "quotas": quota_rows,
    "subnets": subnet_rows,
    "control-plane": tier_rows,
    "load": load_rows,
    "launch": launch_rows,
    "placement": placement_rows,
    "checkpoints": lambda needs: _rows("checkpoints", needs.checkpoints),
    "services": service_rows,
    "queues": queue_rows,
    "windows": window_rows,
    "repairs": lambda needs: _rows("repairs", needs.repairs),
    "access": access_rows,
    "storage": lambda needs: _rows("storage", needs.storage),
    "money": money_rows,
    "items": item_rows,
    "steps": step_rows,
    "parts": part_rows,
    "decisions": lambda needs: _rows("decisions", needs.decisions),
}
"""Rows of the tables, by the names in `columns.csv`."""


def plan_needs(
    plan: ClusterPlan,
    at: datetime | None = None,
    price_list: PriceList | None = None,
    *,
    now: datetime | None = None,
) -> ClusterNeeds:
    """Return the needs of ``plan`` with the most nodes in every pool.

    Args:
        plan: The cluster.
        at: The time at which windows and support of the version are judged, in UTC; None leaves
            them unjudged.
        price_list: Prices; None takes the catalog's.
        now: The time of the answer without ``at``; the needs hold no span until or since then.
    """
    price_list = price_list or catalog_prices()
    pools = plan_pool_needs(plan.region, plan.network, plan.all_pools, price_list)
    queueing = plan.part(QueueingPlan)
    totals = plan_totals(plan.network, pools)
    control_plane = plan_control_plane_needs(plan)
    calendar = plan_calendar(plan.all_pools, at)
    subnets = plan_subnet_needs(plan.network, plan.all_pools)
    quotas = plan_quotas(plan, totals)
    load = plan_load(plan, control_plane, price_list)
    money = plan_money(plan, pools, load, price_list, at)
    return ClusterNeeds(
        name=plan.name,
        region=plan.region,
        at=at,
        answer=plan_answer(
            plan,
            expired=_expired_facts(plan, price_list, at or now),
            pools=pools,
            totals=totals,
            subnets=subnets,
            control_plane=control_plane,
            calendar=calendar,
            ended={
                window.pool
                for window in plan_calendar(plan.all_pools, at or now)
                if window.state == "over"
            },
            money=money,
            at=at,
            quotas=quotas,
            load=load,
        ),
        pools=pools,
        totals=totals,
        subnets=subnets,
        control_plane=control_plane,
        launch=plan_launch(plan.control_plane, plan.all_pools, totals),
        placement=plan.placement,
        checkpoints=plan_checkpoint_needs(plan.saves),
        services=plan_service_needs(plan, price_list),
        queues=queueing.needs(plan.pools) if queueing is not None else None,
        calendar=calendar,
        repairs=plan.nodes.repairs,
        access=plan.access.entries,
        parts=tuple(needs for part in all_parts() if (needs := part.needs(plan)) is not None),
        storage=plan_storage_needs(plan, plan.network, plan.storage),
        money=money,
        quotas=quotas,
        load=load,
        remarks=(
            *policy_remarks(plan.network.policies),
            *address_remarks(plan.network),
            *reservation_remarks(plan.all_pools),
        ),
        topology=plan_topology(plan),
        spend=plan_spend(pools, money, calendar),
        decisions=plan_decisions(plan, control_plane),
    )


def _expired_facts(plan: ClusterPlan, price_list: PriceList, at: datetime | None) -> int | None:
    if at is None:
        return None
    day = at.astimezone(UTC).date()
    return sum(fact.has_expired(day) for fact in facts_of(plan, price_list))


def verdict_line(needs: ClusterNeeds) -> Line:
    """Return whether a cluster fits, and the quota to raise first."""
    answer, control_plane = needs.answer, needs.control_plane
    if answer.verdict in _VERDICTS:
        return (_VERDICTS[answer.verdict],)
    tier = ""
    if control_plane.state == "ask":
        tier = f", with {control_plane.smallest} as its control plane"
    if not answer.quota_count:
        return (f"fits{tier}",)
    are = " quota is raised" if answer.quota_count == 1 else " quotas are raised"
    return (f"fits{tier}, once ", number_at("answer.quota_count", answer.quota_count), are)


def all_figures(needs: ClusterNeeds) -> Iterator[Figure]:
    """Yield every number of ``needs``, in the order in which it is explained."""
    for pool in needs.pools:
        yield from pool.figures.values()
    yield from needs.totals.values()
    for subnets in needs.subnets:
        yield from subnets.figures.values()
    yield from needs.control_plane.figures.values()
    yield from needs.launch.values()
    if needs.placement is not None:
        source = needs.placement.source
        yield from (_placement(gang, source) for gang in needs.placement.gangs)
    for row in (*needs.checkpoints, *needs.services, *needs.calendar, *needs.money.pools):
        yield from row.figures.values()
    for item in needs.money.items:
        yield item.usd_per_hour
        yield item.usd_per_month
    yield from needs.money.figures.values()
    for need in needs.quotas:
        yield need.needed
        if need.clusters is not None:
            yield need.clusters
    for row in needs.load:
        yield row.needed


def _placement(gang: GangPlacement, source: str) -> Figure:
    return Figure(
        id=f"placement.{gang.pods}.seconds",
        value=gang.seconds,
        unit="seconds",
        formula=f"{gang.formula}; measured: {gang.measured}",
        sources=(source,),
    )


def needs_table(needs: ClusterNeeds, name: str) -> Table:
    """Return a table of ``needs`` by its name: a part's, or one of `columns.csv`."""
    for part in needs.parts:
        if part.name == name:
            return words_table(part.columns, part.rows)
    names = [name]
    if name == "services" and any("weights_gb" in service.figures for service in needs.services):
        names.append("models")
    return table_of(names, _ROWS[name](needs), needs)


def _rows(at: str, needs: Sized) -> Iterator[Row]:
    """Yield the rows of a list of needs whose cells are all in `plan --json`."""
    return (Row(f"{at}.{index}") for index in range(len(needs)))
