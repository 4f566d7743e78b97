"""The plan of idle jobs: the function watches jobs, has its rights, and changes nothing else."""

from typing import Any

import pytest

from tests.support.admission import Policy
from tests.support.jobs import CPU_POOL, job_cluster
from tests.support.ledger_life import DOCUMENT
from tests.support.observability_plans import EMAIL, alerts, of, planned
from tests.support.rbac import Rbac
from tests.support.stub_api_server import Object
from ultrascale.plan.model import ClusterPlan
from ultrascale_k8s.observability import charts


def plan_of(engine: str, then: str, **scheduling: object) -> ClusterPlan:
    section = {"ledger": {}, "alarms": EMAIL, "idle_jobs": {"then": then}}
    own = {"queueing": engine} | scheduling if engine else scheduling
    return planned({**DOCUMENT, "scheduling": own, "observability": section})


def objects_of(cluster: ClusterPlan) -> list[Any]:
    return [own for chart in charts(of(cluster))["platform"] for own in chart.published]


def rights_of(cluster: ClusterPlan) -> set[str]:
    rights = Rbac(objects_of(cluster), groups=[of(cluster).fleet_metrics.group])
    return {f"{verb} {kind}.{group}" for verb, group, kind in rights.granted("training")}


JOBS = {f"{verb} jobs.batch" for verb in ("list", "patch")}
SETS = {f"{verb} jobsets.jobset.x-k8s.io" for verb in ("list", "patch")}
VOLCANO = {f"{verb} jobs.batch.volcano.sh" for verb in ("list", "patch")}
RAY = {f"{verb} rayjobs.ray.io" for verb in ("list", "patch")}
WORKLOADS = {f"{verb} workloads.kueue.x-k8s.io" for verb in ("list", "patch")}


@pytest.mark.parametrize(
    ("engine", "scheduling", "kinds", "ends"),
    [
        ("", {}, JOBS, set[str]()),
        ("kueue", {}, JOBS | SETS, WORKLOADS),
        ("volcano", {"ray": True}, JOBS | VOLCANO | RAY, {"create commands.bus.volcano.sh"}),
    ],
)
def test_only_a_cluster_that_ends_jobs_lets_the_function_do_it(
    engine: str, scheduling: Object, kinds: set[str], ends: set[str]
) -> None:
    telling, ending = (plan_of(engine, then, **scheduling) for then in ("tell", "end"))
    assert rights_of(telling) == kinds
    assert rights_of(ending) == kinds | ends
    assert not [own for own in objects_of(ending) if "Policy" in own["kind"]]
    (found,) = (own for own in objects_of(telling) if own["kind"] == "ValidatingAdmissionPolicy")
    policy, group = Policy(found), of(telling).fleet_metrics.group
    old: Object = {"metadata": {}, "spec": {"suspend": False, "template": {"a": [1]}}}
    noted = {**old, "metadata": {"annotations": {"ultrascale.dev/idle": "{}"}}}
    ended = {**old, "spec": {**old["spec"], "suspend": True}}
    assert policy.refusals(noted, old=old, groups=[group]) == []
    assert policy.refusals(ended, old=old, groups=[group])
    assert policy.refusals(ended, old=old, groups=["a-team"]) == []


def test_somebody_hears_of_an_idle_job() -> None:
    (alarm,) = (own for own in alerts(plan_of("", "tell")).alarms if own.name == "idle-jobs")
    assert alarm.metrics["m"].name == "IdleJobs"


def test_a_cluster_in_which_no_gpu_is_read_renders_nothing_of_it() -> None:
    ledger: Object = {"ledger": {}}
    section: Object = {**ledger, "idle_jobs": {}}
    for cluster in (job_cluster(CPU_POOL, scheduling=None), job_cluster()):
        watching, plain = (planned({**cluster, "observability": own}) for own in (section, ledger))
        assert objects_of(watching) == objects_of(plain)
        assert of(watching) == of(plain)
