"""The objective for writes to the API server: what is counted, what is asked, who is told."""

import pytest

from tests.support.observability_plans import CLUSTERS, SLO, objective, of, planned
from tests.support.pools import make_document
from ultrascale.parts.observability.model import WriteLatencyPlan
from ultrascale.plan.model import AlarmPlan

ASKED = CLUSTERS["with an objective"]


def latency(**slo: float) -> WriteLatencyPlan:
    found = of(objective(**slo) if slo else ASKED).write_latency
    assert found is not None
    return found


def alarm(plan: WriteLatencyPlan, name: str) -> AlarmPlan:
    (found,) = (each for each in plan.alarms if each.name == name)
    return found


@pytest.mark.parametrize(("threshold", "goal"), [(15, 90), (1, 99.9), (10_000, 50)])
def test_the_objective_is_the_files(threshold: int, goal: float) -> None:
    plan = latency(threshold_ms=threshold, goal_percent=goal)

    assert plan.objective.goal_percent == goal
    assert plan.objective.good.name == f"WritesWithin{threshold}ms"
    assert plan.objective.total.name == "WritesTotal"
    assert plan.objective.name == f"research-writes-{threshold}ms"
    assert plan.function.input["ThresholdMilliseconds"] == threshold
    for name in ("write-latency", "write-latency-objective"):
        assert (alarm(plan, name).threshold, alarm(plan, name).comparison) == (
            goal,
            "LessThanThreshold",
        )


def test_the_canary_counts_by_the_names_that_the_objective_reads() -> None:
    plan = latency()

    names: dict[str, str] = plan.function.input["Metrics"]  # pyright: ignore[reportAssignmentType]
    assert names["Good"] == plan.objective.good.name
    assert names["Total"] == plan.objective.total.name
    assert plan.function.input["Namespace"] == plan.objective.good.namespace
    assert str(plan.function.input["Path"]).endswith(
        f"/namespaces/{plan.namespace}/leases/{plan.lease}"
    )


def test_a_canary_that_writes_nothing_is_a_fault_within_minutes() -> None:
    silent = alarm(latency(), "write-canary")

    assert silent.missing_is_wrong
    assert silent.metrics["m"] == latency().objective.total
    assert silent.periods * silent.period_seconds == 5 * 60


def test_a_run_lasts_until_the_next_comes_and_ends_before_lambda_ends_it() -> None:
    function = latency(threshold_ms=10_000, goal_percent=90).function
    seconds = function.input["Seconds"]
    assert isinstance(seconds, int)

    assert seconds >= function.interval_minutes * 60 + 30
    # Its last write may take the threshold and the grace that the function gives it.
    assert seconds + 10 + 5 < function.timeout_seconds


def test_an_objective_is_watched_where_nobody_is_told_of_alarms() -> None:
    # As in ultra-100k: the console and the dashboard show the alarms all the same.
    silent = of(planned(make_document(observability={"write_latency_slo": SLO})))
    assert silent.alerts is None
    assert silent.write_latency is not None
    names = {each.name for each in silent.write_latency.alarms}
    assert names == {"write-latency", "write-latency-objective", "write-canary"}
    # A cluster without an objective has no canary.
    plain = CLUSTERS["neuron"]
    assert of(plain).write_latency is None
    for cluster in (ASKED, plain):
        there = "write-canary" in {each.name for each in cluster.namespaces}
        assert there == (cluster is ASKED)


def test_the_dashboard_shows_share_and_objective_against_the_goal() -> None:
    graphs = {graph.title: graph for section in of(ASKED).dashboard for graph in section.graphs}

    share = graphs["Writes within 15 ms"]
    assert share.limits == {"goal": 90}
    assert [line.label for line in share.lines] == ["of the canary's writes", "over 7 days"]
    assert graphs["Duration of the canary's writes"].limits == {"threshold": 15}
    assert "Writes within 15 ms" not in {
        graph.title for section in of(CLUSTERS["neuron"]).dashboard for graph in section.graphs
    }
