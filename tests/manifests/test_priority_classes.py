"""PriorityClasses: who may evict whom."""

from tests.support.applied import applied
from tests.support.kubernetes_schemas import findings
from ultrascale.plan.model import PriorityClassPlan
from ultrascale_k8s.platform import priority_class_objects

PLANS = (
    PriorityClassPlan(name="critical", value=1_000_000, preempts=True),
    PriorityClassPlan(name="preemptible", value=200_000, preempts=False),
)


def test_a_critical_job_evicts_and_a_preemptible_one_waits() -> None:
    documents = applied(priority_class_objects(PLANS))
    found = {d["metadata"]["name"]: (d["value"], d["preemptionPolicy"]) for d in documents}

    assert findings(documents) == []
    assert found == {
        "critical": (1_000_000, "PreemptLowerPriority"),
        "preemptible": (200_000, "Never"),
    }
    # A pod without a class is not raised above anyone.
    assert [d["globalDefault"] for d in documents] == [False, False]
