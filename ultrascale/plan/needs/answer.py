"""Answers to the first questions about a cluster: verdict, quotas, price, window, largest risk."""

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime

from ultrascale.plan.amounts import number
from ultrascale.plan.model import (
    ClusterPlan,
    ControlPlaneNeeds,
    ControlPlanePlan,
    Figure,
    Figures,
    LoadNeed,
    MoneyAnswer,
    MoneyNeeds,
    PlanAnswer,
    PoolNeeds,
    PoolPlan,
    QuotaNeed,
    QuotaToRaise,
    Risk,
    SubnetNeeds,
    Verdict,
    WindowNeeds,
)
from ultrascale.plan.needs.pools import PAID_BEFORE, shards_of
from ultrascale.plan.needs.standing import extended_support_begins, is_in_extended_support
from ultrascale.plan.network.vpc import unrecorded_subnets

_EXCLUDED = ("traffic between zones and out of AWS", "taxes, discounts and support")


def plan_answer(
    plan: ClusterPlan,
    *,
    expired: int | None,
    pools: Sequence[PoolNeeds],
    totals: Figures,
    subnets: Sequence[SubnetNeeds],
    control_plane: ControlPlaneNeeds,
    calendar: Sequence[WindowNeeds],
    ended: Collection[str],
    money: MoneyNeeds,
    at: datetime | None,
    quotas: Sequence[QuotaNeed],
    load: Sequence[LoadNeed],
) -> PlanAnswer:
    """Return the answers from the needs of ``plan``.

    ``ended`` names pools whose window is over; ``expired`` counts facts that it rests on.
    """
    raised = tuple(_quotas_to_raise(quotas, plan.region))
    over = [window for window in calendar if window.pool in ended]
    ahead = [window for window in calendar if window.pool not in ended]
    upcoming = min(ahead, key=lambda window: window.starts, default=None)
    beyond = [*_needs_beyond_limits(quotas, load, control_plane)]
    verdict: Verdict = "fits"
    if over:
        verdict = "over"
    elif beyond:
        verdict = "beyond"
    elif raised or control_plane.state != "within":
        verdict = "raise"
    assumed = bool(unrecorded_subnets(plan.network))
    holds = _holds(totals["nodes"], subnets, control_plane, assumed=assumed)
    why = tuple(why for _, why, _ in (*map(_window_over, over), *beyond)) or (holds,)
    if plan.recorded:
        why += (f"{len(plan.recorded)} recorded facts count for the catalog's",)
    return PlanAnswer(
        verdict=verdict,
        why=why,
        quotas=raised,
        quota_count=len(raised),
        quotas_unknown=tuple(need.name for need in quotas if need.state == "unknown"),
        money=_money(plan, pools, money, at),
        window=upcoming,
        risk=next(_risks(plan.all_pools, over, beyond, raised, subnets, control_plane, upcoming)),
        expired_facts=expired,
    )


def _quotas_to_raise(needs: Sequence[QuotaNeed], region: str) -> Iterator[QuotaToRaise]:
    """Yield quotas to raise: those of default 0 first, then by their ratio to the default."""
    wanted = [
        (need, need.needed.value, need.default)
        for need in needs
        if need.state in ("ask", "beyond")
        and need.needed.value is not None
        and need.default is not None
        and need.needed.value > need.default
    ]
    wanted.sort(key=lambda quota: (quota[2] > 0, -quota[1] / max(quota[2], 1), quota[0].name))
    for need, value, default in wanted:
        count = math.ceil(value)
        granted = need.state == "ask" and need.code and need.service
        yield QuotaToRaise(
            code=need.code,
            service=need.service,
            name=need.name,
            needed=count,
            default=default,
            most=need.most,
            command=(
                "aws service-quotas request-service-quota-increase "
                f"--service-code {need.service} --quota-code {need.code} "
                f"--desired-value {count} --region {region}"
            )
            if granted
            else None,
        )


_Reason = tuple[str, str, Figure | None]


def _window_over(window: WindowNeeds) -> _Reason:
    return window.pool, f"the window of {window.pool} ended {window.ends:%Y-%m-%d %H:%M} UTC", None


def _needs_beyond_limits(
    quotas: Sequence[QuotaNeed], load: Sequence[LoadNeed], control_plane: ControlPlaneNeeds
) -> Iterator[_Reason]:
    """Yield needs beyond published limits, quotas first: subject, reason, size."""
    for need in quotas:
        if need.state == "beyond":
            words = f"{need.needed.value or 0:,.0f} needed, AWS grants {need.most or 0:,}"
            yield need.name, f"{need.name}: {words} at most", need.needed
    for row in load:
        if row.state == "beyond":
            words = (
                f"{row.needed.value or 0:,.0f} {row.needed.unit}, published {row.most or 0:,.0f}"
            )
            yield row.name, f"{row.name}: {words} at most", row.needed
    if control_plane.state == "beyond":
        tier = control_plane.tier
        yield tier, f"{tier} does not hold the load: {_tier(control_plane)}", None


def _holds(
    nodes: Figure,
    subnets: Sequence[SubnetNeeds],
    control_plane: ControlPlaneNeeds,
    *,
    assumed: bool,
) -> str:
    """Return the sentence that the cluster holds its nodes, or which part does not.

    Args:
        nodes: All nodes.
        subnets: The subnets.
        control_plane: Needs of the control plane.
        assumed: Whether existing subnets count as empty, as the file records no free addresses.
    """
    count = f"{nodes.value or 0:,.0f} nodes"
    if control_plane.state != "within":
        return f"{count}; {control_plane.tier} does not hold the load: {_tier(control_plane)}"
    full = [subnet.figures["full"] for subnet in subnets if "full" in subnet.figures]
    most = max(full, key=lambda figure: figure.value or 0, default=None)
    held = f"{control_plane.tier} holds the load"
    if most is None or most.value is None:
        return f"{count}; {held}"
    today = ", if the subnets are empty today" if assumed else ""
    return f"{count}; fullest subnet {number(most.value, places=1)} % in use{today}; {held}"


def _tier(control_plane: ControlPlaneNeeds) -> str:
    if control_plane.smallest is None:
        return "no published tier does"
    return f"{control_plane.smallest} is the smallest that fits"


def _money(
    plan: ClusterPlan, pools: Sequence[PoolNeeds], money: MoneyNeeds, at: datetime | None
) -> MoneyAnswer:
    purchases = {name: shards[0].purchase for name, shards in shards_of(plan.all_pools).items()}
    nodes = {pool.pool: int(pool.figures["nodes"].value or 0) for pool in pools}
    hourly = money.figures["usd_per_hour"]
    paid_before = tuple(
        pool.pool
        for pool in pools
        if purchases[pool.pool] in PAID_BEFORE and pool.pool in hourly.without
    )
    unpriced = tuple(name for name in hourly.without if name not in paid_before)
    return MoneyAnswer(
        usd_per_hour=hourly,
        usd_per_month=money.figures["usd_per_month"],
        oldest=money.oldest,
        newest=money.newest,
        nodes=sum(nodes.values()),
        nodes_at_first=sum(pool.initial_nodes for pool in plan.all_pools),
        nodes_priced=sum(count for name, count in nodes.items() if name not in hourly.without),
        paid_before=paid_before,
        unpriced=unpriced,
        lacking=(
            *_unpriced_types(sorted(unpriced, key=lambda name: -nodes.get(name, 0)), money),
            *(f"{pool} (paid up front)" for pool in paid_before),
            *(name for name in unpriced if name not in nodes),
        ),
        without_count=len(hourly.without),
        spot_at_on_demand=money.spot_at_on_demand,
        excluded=(
            *(item.name for item in money.items if item.kind == "usage"),
            *_EXCLUDED,
            *_later(plan.control_plane, at),
        ),
        command=f"ultrascale prices {plan.region} FILE -o prices.csv" if unpriced else None,
    )


def _unpriced_types(pools: Iterable[str], money: MoneyNeeds) -> Iterable[str]:
    """Return the instance types of ``pools`` without a price, each once."""
    return dict.fromkeys(type_ for name in pools for type_ in money.unpriced_types.get(name, ()))


def _later(control_plane: ControlPlanePlan, at: datetime | None) -> Iterator[str]:
    """Yield costs that rise from a later day on."""
    begins = extended_support_begins(control_plane)
    if begins is not None and not is_in_extended_support(control_plane, at):
        yield f"extended support of Kubernetes {control_plane.version}, from {begins} on"


def _risks(
    pools: Sequence[PoolPlan],
    over: Sequence[WindowNeeds],
    beyond: Sequence[_Reason],
    raised: Sequence[QuotaToRaise],
    subnets: Sequence[SubnetNeeds],
    control_plane: ControlPlaneNeeds,
    window: WindowNeeds | None,
) -> Iterator[Risk]:
    """Yield risks, the largest first.

    First the certain failures of the file, then missing capacity, then the loss of nodes.
    """
    for ended in over:
        subject, text, _ = _window_over(ended)
        advice = "write the window that follows, or take the pool out"
        yield Risk(kind="window-over", subject=subject, text=text, advice=advice)
    for subject, text, figure in beyond:
        advice = "ask your account team in writing, or divide the cluster"
        yield Risk(kind="beyond", subject=subject, text=text, advice=advice, figure=figure)
    if control_plane.state == "ask":
        yield Risk(
            kind="tier",
            subject=control_plane.tier,
            text=f"{control_plane.tier} does not hold the load: {_tier(control_plane)}",
            advice=control_plane.advice,
        )
    for quota in raised[:1]:
        if quota.default == 0:
            text = f"{quota.name} starts at 0: nothing launches until AWS grants {quota.needed:,}"
            advice = "ask now"
            yield Risk(kind="quota", subject=quota.code or quota.name, text=text, advice=advice)
    yield from _zone_risks(subnets)
    yield from _capacity_risks(pools)
    if window is not None:
        yield Risk(
            kind="window",
            subject=window.pool,
            text=f"{window.pool} ends at a fixed time: what has no checkpoint by "
            f"{window.usable_until:%Y-%m-%d %H:%M} UTC is lost",
            advice="have jobs save before the drain",
            figure=window.figures["drain_minutes"],
        )
    for quota in raised[:1]:
        text = f"{quota.name}: {quota.needed:,} needed, {quota.default:,} by default"
        yield Risk(kind="quota", subject=quota.code or quota.name, text=text, advice="ask now")
    yield Risk(
        kind="none", subject="", text="none that can be seen without an account", advice=None
    )


def _zone_risks(subnets: Sequence[SubnetNeeds]) -> Iterator[Risk]:
    for subnet in subnets:
        if subnet.holds_skew is False:
            yield Risk(
                kind="zone",
                subject=subnet.zone,
                text=f"{subnet.zone} has too few addresses if all nodes land there",
                advice="add ranges, or name fewer zones for each pool",
                figure=subnet.figures["nodes_of_skew"],
            )


def _capacity_risks(all_pools: Sequence[PoolPlan]) -> Iterator[Risk]:
    """Yield the risks of accelerated pools without reserved capacity, largest first."""
    pools = sorted(
        (shards[0] for shards in shards_of(all_pools).values() if shards[0].accelerators_per_node),
        key=lambda pool: -pool.max_nodes * pool.accelerators_per_node,
    )
    for pool in pools:
        if pool.purchase == "on-demand" and pool.facts.in_account:
            yield Risk(
                kind="unreserved",
                subject=pool.pool,
                text=f"nobody holds On-Demand {_types(pool)} for {pool.pool}: "
                "a launch may find no capacity",
                advice="reserve it, or give the pool a second type or zone",
            )
    for pool in pools:
        if pool.purchase == "spot":
            yield Risk(
                kind="spot",
                subject=pool.pool,
                text=f"EC2 takes Spot nodes of {pool.pool} back with two minutes' notice",
                advice="keep checkpoints frequent, and work that must end off this pool",
            )


def _types(pool: PoolPlan) -> str:
    first, *more = pool.instance_types
    return f"{first} and others" if more else first
