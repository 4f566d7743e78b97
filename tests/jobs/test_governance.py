"""Jobs of a team wait in its queue, and what no quota holds gives way to them."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.job_rules import findings, pod_templates
from tests.support.jobs import HYBRID, IMAGE, SERVICE, objects, pod_spec
from tests.support.pools import as_text
from ultrascale.errors import ConfigError
from ultrascale.jobs import JobManifests, prepare
from ultrascale.jobs.preparation import JobCluster, read_cluster
from ultrascale.parts.hyperpod.plan import priority_weights

PROGRAM: dict[str, Any] = {"image": IMAGE, "script": "train.py"}
JOB = {"name": "tune", **PROGRAM}
QUEUE = "kueue.x-k8s.io/queue-name"
PRIORITY = "kueue.x-k8s.io/priority-class"
ARRAY: dict[str, Any] = {
    "name": "shards",
    "kind": "batch",
    "image": IMAGE,
    "command": ["python3", "shard.py"],
    "array": {"size": 50, "parallelism": 5},
}
RESUME = "sagemaker.amazonaws.com/enable-job-auto-resume"


@pytest.fixture(scope="module")
def hybrid() -> JobCluster:
    return read_cluster(HYBRID)


def refusals(cluster: JobCluster, job: Any, **changes: Any) -> list[str]:
    try:
        prepare(cluster, job, changes=changes)
    except ConfigError as error:
        return [each.keyed for each in error.diagnostics]
    return []


def workload(sent: JobManifests) -> Any:
    return sent.objects[-1]


# --- who is governed ----------------------------------------------------------------------------


def test_a_template_called_as_a_team_waits_in_its_queue(hybrid: JobCluster) -> None:
    sent = prepare(hybrid, "production", changes=PROGRAM)

    labels = workload(sent)["metadata"]["labels"]
    assert sent.namespace == "hyperpod-ns-production"
    assert labels[QUEUE] == "hyperpod-ns-production-localqueue" == sent.local_queue
    assert labels[PRIORITY] == "critical-priority"


def test_the_jobs_of_a_template_stay_its_teams_whatever_they_are_called(hybrid: JobCluster) -> None:
    sent = prepare(hybrid, "production", changes={**PROGRAM, "name": "nightly-3"})

    assert (sent.name, sent.namespace) == ("nightly-3", "hyperpod-ns-production")


def test_a_job_that_names_a_team_runs_on_hyperpods_nodes(hybrid: JobCluster) -> None:
    sent = prepare(hybrid, JOB | {"team": "research", "priority": "critical"})

    (terms,) = pod_spec(sent)["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]
    assert {"key": "ultrascale.dev/pool", "operator": "In", "values": ["hyperpod"]} in terms[
        "matchExpressions"
    ]
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


def test_what_preempts_a_job_that_may_be_anywhere_is_said(hybrid: JobCluster) -> None:
    sent = prepare(hybrid, "elastic", changes=PROGRAM)

    assert (
        "Not governed by task governance: it takes what is free, and jobs of production "
        "preempt it." in sent.notes
    )


def test_a_job_on_hyperpod_without_a_team_is_not_resumed_and_says_so(hybrid: JobCluster) -> None:
    sent = prepare(hybrid, JOB | {"pool": "hyperpod"})

    assert "annotations" not in workload(sent)["metadata"]
    assert any(note.startswith("HyperPod resumes no jobs in namespace") for note in sent.notes)


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        pytest.param(
            {"team": "research", "pool": "eks-spot"},
            "team: a team's job on eks-spot: teams share the nodes of HyperPod alone, "
            "got 'research'; choose a pool of provisioner hyperpod",
            id="a team's job elsewhere",
        ),
        pytest.param(
            {"team": "research", "namespace": "training"},
            "namespace: not that of team research, hyperpod-ns-research, got 'training'; "
            "leave it out, or rename the job",
            id="two namespaces",
        ),
        pytest.param(
            {"team": "research", "prefer": ["hyperpod"]},
            "prefer: an order of preference in a team's job, whose quota is of HyperPod's nodes "
            "alone, got [hyperpod]; keep prefer or team",
            id="tiers of a team's job",
        ),
        pytest.param(
            {"team": "research", "priority": "critical", "nodes": 5},
            "nodes: more than team research may ever use: 4 nodes, 3 of them its own, got 5; "
            "ask for less, or raise hyperpod.task_governance.teams",
            id="more than the team may borrow",
        ),
        pytest.param(
            {"team": "production", "priority": "critical", "nodes": 6},
            "nodes: more than team production may ever use: 5 nodes, 5 of them its own, got 6; "
            "ask for less, or raise hyperpod.task_governance.teams",
            id="more than a team that borrows nothing has",
        ),
        pytest.param(
            {"prefer": ["eks-spot"], "priority": "critical"},
            "priority: not below that of production, 1000000: task governance cannot hold this "
            "job back, got critical, 1000000; use high, medium, low, preemptible",
            id="a priority that would keep governed jobs off",
        ),
        pytest.param(
            {"pool": "hyperpod", "priority": "critical"},
            "priority: not below that of production, 1000000: task governance cannot hold this "
            "job back, got critical, 1000000; use high, medium, low, preemptible, or name its team",
            id="a job on HyperPod beside the queues that governed jobs could not displace",
        ),
        pytest.param(
            {"node_selector": {"gpu-type": "a100-80gb"}, "priority": "critical"},
            "priority: not below that of production, 1000000: task governance cannot hold this "
            "job back, got critical, 1000000; use high, medium, low, preemptible, or name its team",
            id="one that only HyperPod's nodes can take",
        ),
        pytest.param(
            {"team": "research", "priority": "low"},
            "priority: not above that of elastic, 400000, which no quota holds back, "
            "got low, 400000; use critical, high, medium",
            id="a governed job that gives way to one that is not",
        ),
        pytest.param(
            {"pool": "hyperpod", "nodes": 2, "min_nodes": 1},
            "min_nodes: fewer nodes on HyperPod, whose jobs end when all of their pods have, "
            "got 1; leave it out: HyperPod replaces the node",
            id="fewer nodes on HyperPod",
        ),
        pytest.param(
            {"pool": "hyperpod", "role": "trainer"},
            "role: another role on HyperPod, where pods are called workers, got 'trainer'; "
            "leave it out",
            id="a role on HyperPod",
        ),
        pytest.param(
            {"prefer": ["hyperpod", "eks-spot"], "resources": {"gpu": 0}},
            "resources.gpu: no accelerator on hyperpod, from which an admission policy keeps such "
            "pods off, got 0; ask for some, or choose other nodes",
            id="pods that the cluster's own policy would refuse",
        ),
    ],
)
def test_what_task_governance_could_not_run_is_refused(
    hybrid: JobCluster, changes: dict[str, Any], line: str
) -> None:
    assert line in refusals(hybrid, JOB, **changes)


def test_an_array_takes_its_turn_with_as_many_pods_as_run_at_once(hybrid: JobCluster) -> None:
    changes = {"team": "research", "priority": "critical", "array": {"parallelism": 4}}
    sent = prepare(hybrid, ARRAY, changes=changes)

    (found,) = objects(sent, "Job")
    assert found["metadata"]["labels"][QUEUE] == "hyperpod-ns-research-localqueue"
    assert (found["spec"]["completions"], found["spec"]["parallelism"]) == (50, 4)


def test_an_array_of_more_pods_at_once_than_its_team_may_borrow_is_refused(
    hybrid: JobCluster,
) -> None:
    assert refusals(hybrid, ARRAY, team="research", priority="critical") == [
        "array.parallelism: more than team research may ever use: 4 nodes, 3 of them its own, "
        "got 5; ask for less, or raise hyperpod.task_governance.teams"
    ]


def test_a_teams_job_elsewhere_is_not_told_of_quotas_too(hybrid: JobCluster) -> None:
    job = JOB | {"team": "research", "pool": "eks-spot", "priority": "critical"}

    assert refusals(hybrid, job) == [
        "team: a team's job on eks-spot: teams share the nodes of HyperPod alone, "
        "got 'research'; choose a pool of provisioner hyperpod"
    ]


def test_a_service_takes_no_turn_in_a_queue(hybrid: JobCluster) -> None:
    service = SERVICE | {"pool": "hyperpod", "team": "research", "priority": "critical"}

    assert refusals(hybrid, service) == [
        "team: a service in a queue, in which it would hold its quota for good, got 'research'; "
        "leave it out: it runs beside the teams' jobs"
    ]


@pytest.mark.parametrize(
    ("job", "note"),
    [
        ({"priority": "high"}, "it takes what is free, and jobs of production preempt it."),
        (
            SERVICE | {"priority": "critical"},
            "it takes what is free, and no team's job preempts it.",
        ),
    ],
)
def test_what_runs_on_hyperpod_beside_the_queues_says_who_preempts_it(
    hybrid: JobCluster, job: dict[str, Any], note: str
) -> None:
    sent = prepare(hybrid, {**(JOB if "kind" not in job else {}), **job, "pool": "hyperpod"})

    assert f"Not governed by task governance: {note}" in sent.notes


def test_what_never_runs_on_hyperpod_is_as_important_as_it_says(hybrid: JobCluster) -> None:
    assert refusals(hybrid, JOB | {"pool": "eks-spot", "priority": "critical"}) == []


def test_a_job_borrows_as_much_as_its_team_may(hybrid: JobCluster) -> None:
    job = JOB | {"team": "research", "priority": "critical", "nodes": 4}

    assert refusals(hybrid, job) == []


def test_nodes_that_come_one_by_one_are_not_sent_to_volcano_which_governance_excludes(
    hybrid: JobCluster,
) -> None:
    job = JOB | {"nodes": 2, "pool": "eks-on-demand"}
    instead = JOB | {"nodes": 2, "prefer": ["eks-on-demand"], "priority": "low"}

    assert refusals(hybrid, job) == [
        "nodes: several nodes that are launched one by one, with no queueing engine: those that "
        "come first would be paid for while the job waits for the others, got 2; "
        "write prefer: [eks-on-demand], use nodes.static, or ask for 1"
    ]
    assert refusals(hybrid, instead) == []


def test_what_kubernetes_preempts_and_what_the_queues_put_first_is_one_order(
    hybrid: JobCluster,
) -> None:
    classes = hybrid.cluster.scheduling.priority_classes
    weights = priority_weights(classes)

    assert sorted(classes, key=lambda name: classes[name]) == sorted(
        weights, key=lambda name: weights[name]
    )


# --- where HyperPod's nodes are what is asked for -----------------------------------------------


@pytest.mark.parametrize(
    ("instance_type", "fits"), [("ml.p4de.24xlarge", True), ("p4de.24xlarge", False)]
)
def test_hyperpods_nodes_are_found_by_its_own_name_of_their_type(
    hybrid: JobCluster, instance_type: str, fits: bool
) -> None:
    job = JOB | {"node_selector": {"node.kubernetes.io/instance-type": instance_type}}

    assert (refusals(hybrid, job) == []) is fits


def test_nothing_asks_hyperpod_for_huge_pages_that_no_page_promises(hybrid: JobCluster) -> None:
    requests = pod_spec(prepare(hybrid, JOB | {"pool": "hyperpod"}))["containers"][0]["resources"][
        "requests"
    ]

    assert requests["vpc.amazonaws.com/efa"] == "4"
    assert "hugepages-2Mi" not in requests


def test_one_template_is_a_pytorchjob_on_hyperpod_and_a_job_on_ec2(hybrid: JobCluster) -> None:
    kinds = {
        pool: workload(prepare(hybrid, JOB | {"pool": pool}))["kind"]
        for pool in ("hyperpod", "eks-on-demand")
    }

    assert kinds == {"hyperpod": "PyTorchJob", "eks-on-demand": "Job"}


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
    assert found["metadata"]["annotations"] == {
        RESUME: "true",
        "sagemaker.amazonaws.com/job-max-retry-count": "4",
    }
    # The operator adds up the restarts of all containers.
    assert found["spec"]["runPolicy"]["backoffLimit"] == 8
