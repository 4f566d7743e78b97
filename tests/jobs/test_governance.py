"""Jobs of a team wait in its queue, and what no quota holds gives way to them."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.job_rules import findings, pod_templates
from tests.support.jobs import HYBRID, IMAGE, SERVICE, objects, pod_spec
from tests.support.pools import as_text
from tests.support.verdicts import verdicts
from ultrascale.errors import ConfigError
from ultrascale.jobs import JobManifests, prepare
from ultrascale.jobs.preparation import JobCluster
from ultrascale.parts.hyperpod.plan import priority_weights

PROGRAM: dict[str, Any] = {"image": IMAGE, "script": "train.py"}
JOB = {"name": "tune", **PROGRAM}
QUEUE = "kueue.x-k8s.io/queue-name"
PRIORITY = "kueue.x-k8s.io/priority-class"
_SHARDS = {"command": ["python3", "shard.py"], "array": {"size": 50, "parallelism": 5}}
ARRAY: dict[str, Any] = {"name": "shards", "kind": "batch", "image": IMAGE, **_SHARDS}
RESUME = "sagemaker.amazonaws.com/enable-job-auto-resume"


def refusals(cluster: JobCluster, job: Any, **changes: Any) -> list[str]:
    try:
        prepare(cluster, job, changes=changes)
    except ConfigError as error:
        return verdicts(error)
    return []


def workload(sent: JobManifests) -> Any:
    return sent.objects[-1]


# --- who is governed ----------------------------------------------------------------------------


def test_a_template_called_as_a_team_waits_in_its_queue(hybrid: JobCluster) -> None:
    # Its jobs stay its team's whatever they are called.
    for name in ("production", "nightly-3"):
        sent = prepare(hybrid, "production", changes={**PROGRAM, "name": name})
        labels = workload(sent)["metadata"]["labels"]
        assert (sent.name, sent.namespace) == (name, "hyperpod-ns-production")
        assert labels[QUEUE] == "hyperpod-ns-production-localqueue" == sent.local_queue
        assert labels[PRIORITY] == "critical-priority"


def test_a_job_that_names_a_team_runs_on_hyperpods_nodes(hybrid: JobCluster) -> None:
    sent = prepare(hybrid, JOB | {"team": "research", "priority": "critical"})
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    (terms,) = pod_spec(sent)["affinity"]["nodeAffinity"][required]["nodeSelectorTerms"]
    pool = {"key": "ultrascale.dev/pool", "operator": "In", "values": ["hyperpod"]}
    assert pool in terms["matchExpressions"]
    assert sent.namespace == "hyperpod-ns-research"


@pytest.mark.parametrize("kind", ["training", "batch"])
def test_every_pod_of_a_governed_job_names_its_queue_or_it_would_be_refused(
    hybrid: JobCluster, kind: str
) -> None:
    job = JOB | {"team": "production", "priority": "high", "kind": kind}
    if kind == "batch":
        job = job | {"script": None, "command": ["true"]}

    sent = prepare(hybrid, {key: value for key, value in job.items() if value is not None})

    (template,) = pod_templates(sent)
    assert template["metadata"]["labels"][QUEUE] == "hyperpod-ns-production-localqueue"
    assert findings(sent, "1.35") == []


def test_a_template_called_as_a_team_that_runs_elsewhere_is_not_governed_and_says_so(
    hybrid: JobCluster,
) -> None:
    """Its queue would hold it for ever, and without one the team's namespace refuses its pods."""
    sent = prepare(hybrid, "research", changes=PROGRAM)
    (template,) = pod_templates(sent)
    assert sent.namespace == "training"
    assert QUEUE not in {**workload(sent)["metadata"]["labels"], **template["metadata"]["labels"]}
    assert any(note.startswith("Not governed by task governance") for note in sent.notes)
    # A job on HyperPod without a team is a PyTorchJob that is not resumed.
    own, other = (prepare(hybrid, JOB | {"pool": pool}) for pool in ("hyperpod", "eks-on-demand"))
    assert [workload(each)["kind"] for each in (own, other)] == ["PyTorchJob", "Job"]
    assert "annotations" not in workload(own)["metadata"]
    assert any(note.startswith("HyperPod resumes no jobs in namespace") for note in own.notes)
    # Nothing asks HyperPod for huge pages that no page promises.
    requests = pod_spec(own)["containers"][0]["resources"]["requests"]
    assert requests["vpc.amazonaws.com/efa"] == "4"
    assert "hugepages-2Mi" not in requests


NOT_BELOW = "priority: job_suits_its_team"
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a team's job elsewhere": (
        {"team": "research", "pool": "eks-spot"},
        "team: job_suits_its_team",
    ),
    "two namespaces": (
        {"team": "research", "namespace": "training"},
        "namespace: job_suits_its_team",
    ),
    "tiers of a team's job": (
        {"team": "research", "prefer": ["hyperpod"]},
        "prefer: job_has_one_way_to_nodes",
    ),
    "more than the team may borrow": (
        {"team": "research", "priority": "critical", "nodes": 5},
        "nodes: quota_holds",
    ),
    "more than a team that borrows nothing has": (
        {"team": "production", "priority": "critical", "nodes": 6},
        "nodes: quota_holds",
    ),
    "a priority that would keep governed jobs off": (
        {"prefer": ["eks-spot"], "priority": "critical"},
        NOT_BELOW,
    ),
    "a job on HyperPod beside the queues that governed jobs could not displace": (
        {"pool": "hyperpod", "priority": "critical"},
        NOT_BELOW,
    ),
    "one that only HyperPod's nodes can take": (
        {"node_selector": {"gpu-type": "a100-80gb"}, "priority": "critical"},
        NOT_BELOW,
    ),
    "a governed job that gives way to one that is not": (
        {"team": "research", "priority": "low"},
        "priority: job_suits_its_team",
    ),
    "fewer nodes on HyperPod": (
        {"pool": "hyperpod", "nodes": 2, "min_nodes": 1},
        "min_nodes: pytorch_job_is_plain",
    ),
    "a role on HyperPod": (
        {"pool": "hyperpod", "role": "trainer"},
        "role: pytorch_job_is_plain",
    ),
    "pods that the cluster's own policy would refuse": (
        {"prefer": ["hyperpod", "eks-spot"], "resources": {"gpu": 0}},
        "resources.gpu: nodes_take_its_pods",
    ),
}


@pytest.mark.parametrize(("changes", "line"), REFUSED.values(), ids=REFUSED)
def test_what_task_governance_could_not_run_is_refused(
    hybrid: JobCluster, changes: dict[str, Any], line: str
) -> None:
    assert line in refusals(hybrid, JOB, **changes)


# A job borrows as much as its team may, and one that never runs on HyperPod is as important as it
# says; HyperPod's nodes are found by its own name of their type.
@pytest.mark.parametrize(
    ("changes", "lines"),
    [
        ({"team": "research", "priority": "critical", "nodes": 4}, 0),
        ({"pool": "eks-spot", "priority": "critical"}, 0),
        ({"node_selector": {"node.kubernetes.io/instance-type": "ml.p4de.24xlarge"}}, 0),
        ({"node_selector": {"node.kubernetes.io/instance-type": "p4de.24xlarge"}}, 1),
        # A team's job elsewhere is not told of quotas too.
        ({"team": "research", "pool": "eks-spot", "priority": "critical"}, 1),
    ],
)
def test_what_task_governance_can_run_is_not_refused(
    hybrid: JobCluster, changes: dict[str, Any], lines: int
) -> None:
    assert len(refusals(hybrid, JOB | changes)) == lines


def test_an_array_takes_its_turn_with_as_many_pods_as_run_at_once(hybrid: JobCluster) -> None:
    own: dict[str, Any] = {"team": "research", "priority": "critical"}
    (found,) = objects(prepare(hybrid, ARRAY, changes=own | {"array": {"parallelism": 4}}), "Job")
    assert found["metadata"]["labels"][QUEUE] == "hyperpod-ns-research-localqueue"
    assert (found["spec"]["completions"], found["spec"]["parallelism"]) == (50, 4)
    assert refusals(hybrid, ARRAY, **own) == ["array.parallelism: quota_holds"]


def test_a_service_takes_no_turn_in_a_queue(hybrid: JobCluster) -> None:
    service = SERVICE | {"pool": "hyperpod", "team": "research", "priority": "critical"}

    assert refusals(hybrid, service) == ["team: job_suits_its_team"]


@pytest.mark.parametrize(
    ("job", "preempts"),
    [
        (JOB | {"pool": "hyperpod", "priority": "high"}, "jobs of production preempt it"),
        (SERVICE | {"pool": "hyperpod", "priority": "critical"}, "no team's job preempts it"),
        # One that may be anywhere.
        ("elastic", "jobs of production preempt it"),
    ],
)
def test_what_runs_on_hyperpod_beside_the_queues_says_who_preempts_it(
    hybrid: JobCluster, job: Any, preempts: str
) -> None:
    sent = prepare(hybrid, job, changes=PROGRAM if job == "elastic" else {})
    note = f"Not governed by task governance: it takes what is free, and {preempts}."
    assert note in sent.notes


def test_nodes_that_come_one_by_one_are_not_sent_to_volcano_which_governance_excludes(
    hybrid: JobCluster,
) -> None:
    job = JOB | {"nodes": 2, "pool": "eks-on-demand"}
    instead = JOB | {"nodes": 2, "prefer": ["eks-on-demand"], "priority": "low"}

    assert refusals(hybrid, job) == ["nodes: pods_start_together"]
    assert refusals(hybrid, instead) == []


def test_what_kubernetes_preempts_and_what_the_queues_put_first_is_one_order(
    hybrid: JobCluster,
) -> None:
    classes = hybrid.cluster.scheduling.priority_classes
    weights = priority_weights(classes)
    by_value, by_weight = (sorted(each, key=lambda n: each[n]) for each in (classes, weights))
    assert by_value == by_weight


# --- where HyperPod's nodes are what is asked for -----------------------------------------------


def test_where_volcano_runs_it_starts_the_jobs_of_hyperpod_too(tmp_path: Path) -> None:
    document: dict[str, Any] = yaml.load(HYBRID.read_text(), yaml.CSafeLoader)
    document["hyperpod"] = {}
    document["scheduling"]["queueing"] = "volcano"
    del document["backend"]
    file = tmp_path / "cluster.yaml"
    file.write_text(as_text(document))

    sent = prepare(file, JOB | {"pool": "hyperpod", "nodes": 2})

    assert workload(sent)["apiVersion"] == "batch.volcano.sh/v1alpha1"
    assert any(note.startswith("Volcano restarts it") for note in sent.notes)


def test_the_service_of_a_job_selects_its_first_pod_alone(hybrid: JobCluster) -> None:
    sent = prepare(hybrid, "production", changes={**PROGRAM, "nodes": 2})

    (service,) = objects(sent, "Service")
    assert service["spec"]["selector"] == {
        "ultrascale.dev/job": "production",
        "training.kubeflow.org/replica-index": "0",
    }
    assert findings(sent, "1.35") == []


def test_hyperpod_resumes_a_teams_job_as_often_as_it_may_restart(hybrid: JobCluster) -> None:
    job = prepare(hybrid, "production", changes={**PROGRAM, "restarts": {"job": 4}, "nodes": 2})
    found = workload(job)
    retries = {"sagemaker.amazonaws.com/job-max-retry-count": "4"}
    assert found["metadata"]["annotations"] == {RESUME: "true", **retries}
    # The operator adds up the restarts of all containers.
    assert found["spec"]["runPolicy"]["backoffLimit"] == 8
