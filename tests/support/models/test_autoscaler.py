"""The model of KEDA and the autoscaler does what their pages say, in figures of those pages."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.models.autoscaler import SYNC_SECONDS, Autoscaler


def scaled(
    replicas: int, *, kind: str = "sum", type: str = "AverageValue", **limits: Any
) -> Autoscaler:
    """Return two replicas to ten, at five requests each, which fall back to four."""
    fast = {"periodSeconds": SYNC_SECONDS, "type": "Percent", "value": 100}
    rules = {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [fast]}
    behavior = {"scaleUp": rules | limits, "scaleDown": rules | limits}
    metadata = {"targetValue": "5", "valueLocation": "waiting", "aggregationType": kind}
    spec: dict[str, Any] = {
        "minReplicaCount": 2,
        "maxReplicaCount": 10,
        "triggers": [{"metricType": type, "metadata": metadata}],
        "fallback": {"failureThreshold": 2, "replicas": 4, "behavior": "currentReplicasIfHigher"},
        "advanced": {"horizontalPodAutoscalerConfig": {"behavior": behavior}},
    }
    return Autoscaler(spec, replicas)


@pytest.mark.parametrize(
    ("replicas", "pods", "expected"),
    [
        # Twice the target: twice the replicas.
        (2, ["waiting 10", "waiting 10"], 4),
        # Within a tolerance of a tenth nothing is scaled.
        (2, ["waiting 5", "waiting 5.5"], 2),
        (4, ["waiting 1"] * 4, 2),
        # The limits hold whatever the metric says.
        (8, ["waiting 99"] * 8, 10),
        # A pod that does not answer is left out of the sum, as if it had nothing to do.
        (2, ["waiting 20", None], 4),
    ],
)
def test_replicas_follow_the_metric_within_tolerance_and_limits(
    replicas: int, pods: Sequence[str | None], expected: int
) -> None:
    assert scaled(replicas).sync(pods) == expected


@pytest.mark.parametrize(
    ("replicas", "pods", "expected"),
    [
        (2, ["waiting 10", "waiting 10"], 4),
        # A pod that does not answer counts as the others do.
        (4, ["waiting 10", None, "waiting 10", None], 8),
        (4, ["waiting 5", None, "waiting 5.5", None], 4),
        # Replicas that load their model do not count.
        (6, ["waiting 20"], 4),
    ],
)
def test_the_ready_pods_are_multiplied_by_an_average(
    replicas: int, pods: Sequence[str | None], expected: int
) -> None:
    assert scaled(replicas, kind="average", type="Value").sync(pods) == expected


@pytest.mark.parametrize("type", ["Value", "AverageValue"])
def test_a_fallback_keeps_the_replicas_by_either_type(type: str) -> None:
    scaler = scaled(6, kind="average", type=type)

    assert [scaler.sync([None] * 6) for _ in range(4)] == [6] * 4


def test_a_metric_that_fails_stays_until_it_failed_too_often() -> None:
    """After three failures in a row KEDA hands on the fallback's replicas."""
    scaler = scaled(2)

    assert [scaler.sync([None, None]) for _ in range(3)] == [2, 2, 4]
    assert scaled(6).sync([None] * 6) == 6


def test_the_window_of_stabilization_keeps_the_highest_of_its_time() -> None:
    scaler = scaled(4, stabilizationWindowSeconds=4 * SYNC_SECONDS)
    scaler.sync(["waiting 5"] * 4)

    assert [scaler.sync(["waiting 1"] * 4) for _ in range(4)] == [4, 4, 4, 2]


def test_a_policy_of_pods_limits_the_speed() -> None:
    slow = {"periodSeconds": SYNC_SECONDS, "type": "Pods", "value": 1}
    scaler = scaled(2, policies=[slow])

    assert [scaler.sync(["waiting 40"]), scaler.sync(["waiting 40"])] == [3, 4]
