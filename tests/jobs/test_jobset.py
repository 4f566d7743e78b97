"""Training of several nodes under Kueue: a JobSet that its queue admits whole."""

import re
from typing import Any

import pytest

from tests.support.job_rules import findings
from tests.support.jobs import (
    KUEUE,
    environment,
    job_cluster,
    make_job,
    objects,
    pod_spec,
    prepared,
    refusals,
)
from tests.support.queued_pools import planned, queued_document
from ultrascale.jobs import JobManifests
from ultrascale.parts.kueue.model import Plan as KueuePlan

QUEUE = "kueue.x-k8s.io/queue-name"
PRIORITY = "kueue.x-k8s.io/priority-class"
CLUSTER = job_cluster(scheduling=KUEUE)


@pytest.fixture(scope="module")
def sent() -> JobManifests:
    return prepared(CLUSTER, make_job(queue="research", priority="high"))


def jobset(job: JobManifests) -> Any:
    (found,) = objects(job, "JobSet")
    return found


def test_several_nodes_are_one_jobset_that_waits_in_its_queue_by_its_priority(
    sent: JobManifests,
) -> None:
    labels = jobset(sent)["metadata"]["labels"]

    assert [each["kind"] for each in sent.objects] == ["JobSet"]
    assert (labels[QUEUE], labels[PRIORITY]) == ("research", "high")
    assert (sent.local_queue, sent.queue) == ("research", None)
    assert findings(sent) == []


def test_the_pods_meet_at_the_first_one_by_the_name_that_jobset_gives_it(
    sent: JobManifests,
) -> None:
    (role,) = jobset(sent)["spec"]["replicatedJobs"]
    script = pod_spec(sent)["containers"][0]["command"][2]
    name = f"{sent.name}-{role['name']}-0-0.{sent.name}"

    assert f"main=$(getent ahosts {name})" in script
    assert '--node-rank="$index"' in script
    assert "declare -i index=JOB_COMPLETION_INDEX" in script
    assert jobset(sent)["spec"]["network"] == {
        "enableDNSHostnames": True,
        "publishNotReadyAddresses": True,
    }


def test_each_restart_meets_under_a_name_of_its_own(sent: JobManifests) -> None:
    served = job_cluster(scheduling=KUEUE | {"rendezvous": {"backend": "etcd"}})
    etcd = prepared(served, make_job(queue="research", rendezvous="etcd"))
    scripts = [pod_spec(each)["containers"][0]["command"][2] for each in (sent, etcd)]
    fields = environment(sent)
    assert all('--rdzv-id="tune-${JOBSET_UID}-${ATTEMPT}"' in script for script in scripts)
    assert "--rdzv-backend=etcd-v3" in scripts[1]
    assert fields["ATTEMPT"] == "metadata.labels['jobset.sigs.k8s.io/restart-attempt']"
    assert fields["JOBSET_UID"] == "metadata.labels['jobset.sigs.k8s.io/jobset-uid']"
    # No job sets a variable by which its pods meet.
    (line,) = refusals(CLUSTER, make_job(queue="research", env={"JOBSET_UID": "1"}))
    assert line.startswith("env.JOBSET_UID: variables_do_no_harm")


def test_with_fewer_nodes_lost_pods_come_back_alone_and_enough_of_them_end_the_job() -> None:
    job = prepared(CLUSTER, make_job(queue="research", nodes=4, min_nodes=2))
    (role,) = jobset(job)["spec"]["replicatedJobs"]
    spec = role["template"]["spec"]

    assert (spec["completions"], spec["backoffLimitPerIndex"]) == (4, 10)
    assert spec["successPolicy"] == {"rules": [{"succeededCount": 2}]}
    assert spec["podFailurePolicy"]["rules"][0]["action"] == "Ignore"
    assert "--nnodes=2:4" in pod_spec(job)["containers"][0]["command"][2]
    assert any("quota for all 4 nodes" in note for note in job.notes)
    assert findings(job) == []


@pytest.mark.parametrize(
    ("reason", "message", "action"),
    [
        (
            "PodFailurePolicy",
            "Pod training/tune-worker-0-1-x has condition DisruptionTarget matching FailJob rule "
            "at index 0",
            "RestartJobSetAndIgnoreMaxRestarts",
        ),
        (
            "PodFailurePolicy",
            "Container worker for pod training/tune-worker-0-1-x failed with exit code 2 matching "
            "FailJob rule at index 1",
            "FailJobSet",
        ),
        ("BackoffLimitExceeded", "Job has reached the specified backoff limit", None),
    ],
)
def test_a_lost_node_costs_no_restart_and_a_mistake_ends_the_job(
    sent: JobManifests, reason: str, message: str, action: str | None
) -> None:
    """The messages are Kubernetes' own; None is a restart that counts."""
    policy = jobset(sent)["spec"]["failurePolicy"]
    matching = (
        rule["action"]
        for rule in policy["rules"]
        if reason in rule["onJobFailureReasons"]
        and any(re.search(each, message) for each in rule.get("onJobFailureMessagePatterns", [""]))
    )

    assert next(matching, None) == action
    assert (policy["maxRestarts"], policy["restartStrategy"]) == (10, "BlockingRecreate")


def flavors_of(pod: Any, plan: KueuePlan) -> set[str]:
    """Return the flavors that Kueue may give a pod: labels of a flavor that it asks for fit.

    Source: https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/pkg/scheduler/flavorassigner/flavorassigner.go
    """
    nodes = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (term,) = nodes["nodeSelectorTerms"]
    return {
        flavor.name
        for flavor in plan.flavors
        if all(
            flavor.node_labels.get(each["key"], each["values"][0]) in each["values"]
            for each in term["matchExpressions"]
        )
    }


@pytest.mark.parametrize(
    ("job", "flavors"),
    [
        ({}, {"reserved", "burst", "spot"}),
        ({"pool": "burst"}, {"burst"}),
        ({"node_selector": {"karpenter.sh/capacity-type": "spot"}}, {"spot"}),
        ({"node_selector": {"ultrascale.dev/role": "reserved"}}, {"reserved"}),
    ],
)
def test_kueue_chooses_among_the_pools_that_a_job_may_run_on(
    job: dict[str, Any], flavors: set[str]
) -> None:
    document = queued_document({"name": "research", "prefer": ["reserved", "burst", "spot"]})
    plan = planned(document).part(KueuePlan)

    found = prepared(document, make_job(pool=None) | job)

    assert plan is not None
    assert flavors_of(pod_spec(found), plan) == flavors
