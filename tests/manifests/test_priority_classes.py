"""PriorityClasses: who may evict whom."""

from typing import Any

import pytest

from tests.support.applied import applied
from tests.support.kubernetes_schemas import findings
from ultrascale.plan.model import PriorityClassPlan
from ultrascale_k8s.platform import priority_class_objects

PLANS = (
    PriorityClassPlan(name="critical", value=1_000_000, preempts=True),
    PriorityClassPlan(name="preemptible", value=200_000, preempts=False),
)


@pytest.fixture(scope="module")
def documents() -> list[dict[str, Any]]:
    return applied(priority_class_objects(PLANS))


def test_api_server_takes_the_priority_classes(documents: list[dict[str, Any]]) -> None:
    assert findings(documents) == []


def test_a_critical_job_evicts_and_a_preemptible_one_waits(documents: list[dict[str, Any]]) -> None:
    found = {d["metadata"]["name"]: (d["value"], d["preemptionPolicy"]) for d in documents}

    assert found == {
        "critical": (1_000_000, "PreemptLowerPriority"),
        "preemptible": (200_000, "Never"),
    }


def test_a_pod_without_a_class_is_not_raised_above_anyone(documents: list[dict[str, Any]]) -> None:
    assert [d["globalDefault"] for d in documents] == [False, False]
