"""Graphs and alarms of a control plane, against the limits of its tier."""

from functools import cache

import pytest

from tests.support.observability_plans import CLUSTERS, alerts, objective, of
from ultrascale.catalog import eks
from ultrascale.plan import ClusterPlan
from ultrascale.plan.model import AlarmPlan, GraphPlan

TIERS = [tier for tier in eks.CONTROL_PLANE_TIERS if tier != "standard"]


@cache
def sized(tier: str) -> ClusterPlan:
    return objective(tier)


def graphs(cluster: ClusterPlan) -> dict[str, GraphPlan]:
    return {graph.title: graph for section in of(cluster).dashboard for graph in section.graphs}


def alarms(cluster: ClusterPlan) -> dict[str, AlarmPlan]:
    return {alarm.name: alarm for alarm in alerts(cluster).alarms}


@pytest.mark.parametrize("tier", TIERS)
def test_a_provisioned_tier_is_shown_and_told_against_its_limits(tier: str) -> None:
    limits = eks.TIER_LIMITS[f"tier-{tier}"]
    shown, told = graphs(sized(tier)), alarms(sized(tier))

    assert shown["API server seats in use"].limits == {f"limit of tier-{tier}": limits.api_seats}
    assert shown["Scheduling attempts a second"].limits == {
        f"pods a second of tier-{tier}": limits.pods_per_second
    }
    assert told["api-seats"].threshold == pytest.approx(0.8 * limits.api_seats)
    assert told["etcd-database"].threshold == pytest.approx(0.75 * limits.database_gb * 10**9)


def test_a_control_plane_that_scales_by_itself_has_no_limit_but_of_its_database() -> None:
    shown, told = graphs(CLUSTERS["neuron"]), alarms(CLUSTERS["neuron"])

    assert shown["API server seats in use"].limits == {}
    assert shown["Scheduling attempts a second"].limits == {}
    assert shown["etcd database"].limits == {"limit of standard": 8e9}
    assert "api-seats" not in told
    assert told["etcd-database"].threshold == 6e9


def test_everything_that_users_of_an_api_server_notice_is_told() -> None:
    told = alarms(sized("8xl"))
    assert {*told} >= {
        *("api-seats", "etcd-database", "api-throttled", "api-errors", "api-write-latency"),
        *("api-list-latency", "webhook-latency", "scheduler-errors"),
    }
    writes = told["api-write-latency"]
    verbs = {metric.name.split("_")[-2] for metric in writes.metrics.values()}
    assert (writes.threshold, told["api-list-latency"].threshold) == (1, 30)
    assert verbs == {"PUT", "PATCH", "POST", "DELETE"}


def test_what_servers_say_each_minute_is_not_added_up_over_a_longer_period() -> None:
    # On a large fleet, or a week's view, five minutes of seats would look like five times as many.
    shown = graphs(sized("8xl"))

    for title in ("API server seats in use", "Requests in flight"):
        for line in shown[title].lines:
            assert line.expression == "m * 60 / PERIOD(m)"
            assert line.metrics["m"].statistic == "Sum"
    # Alarms look at single minutes.
    assert alarms(sized("8xl"))["api-seats"].period_seconds == 60


def test_no_other_name_of_an_alarm_is_given_twice() -> None:
    for cluster in CLUSTERS.values():
        latency = of(cluster).write_latency
        own = latency.alarms if latency else ()
        names = [each.name for each in (*alerts(cluster).alarms, *own)]
        assert len(names) == len({*names})
