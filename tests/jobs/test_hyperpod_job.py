"""Training jobs are HyperPodPyTorchJobs where HyperPod's training operator is."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import job_manifests as given
from tests.support.job_manifests import HYPERPOD_JOBS, hyperpod_job, hyperpod_pod
from tests.support.job_rules import findings, pod_templates
from tests.support.jobs import make_job, operated_file, refusals
from tests.support.stub_api_http import serve
from tests.support.stub_api_server import StubApiServer
from tests.support.verdicts import verdicts
from ultrascale.cluster_api.server import Cluster
from ultrascale.errors import ClusterError, ConfigError
from ultrascale.jobs import JobManifests, logs, prepare, submission
from ultrascale.jobs.cancellation import cancel, objects_of
from ultrascale.jobs.preparation import JobCluster, read_cluster
from ultrascale.jobs.room import waits_for_room
from ultrascale.jobs.status import job_status
from ultrascale.jobs.workloads import read_workload
from ultrascale.parts.hyperpod.workloads import HYPERPOD_JOB

JOB: dict[str, Any] = make_job(
    pool=None, durable=None, nodes=4, team="production", priority="critical"
)
REQUIRED = "kueue.x-k8s.io/podset-required-topology"
PREFERRED = "kueue.x-k8s.io/podset-preferred-topology"
LAYER = "topology.k8s.aws/network-node-layer"


@pytest.fixture(scope="module")
def operated(tmp_path_factory: pytest.TempPathFactory) -> JobCluster:
    return read_cluster(operated_file(tmp_path_factory.mktemp("operated")))


def sent(cluster: JobCluster, **changes: Any) -> JobManifests:
    return prepare(cluster, JOB, changes=changes)


def spec_of(job: JobManifests) -> Any:
    (found,) = job.objects
    assert found["kind"] == "HyperPodPyTorchJob"
    return found["spec"]


def metadata_of(job: JobManifests) -> list[Any]:
    """Return the metadata of a job and of its pods."""
    found: Any = job.objects[-1]
    (template,) = pod_templates(job)
    return [found["metadata"], template["metadata"]]


# --- what is sent -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"nodes": 1},
        {"min_nodes": 2, "role": "trainer"},
        {"topology": "required"},
        {"script": None, "command": ["bash", "run.sh"]},
    ],
    ids=str,
)
def test_every_job_is_one_that_awss_own_client_could_send(
    operated: JobCluster, changes: dict[str, Any]
) -> None:
    job = {key: value for key, value in (JOB | changes).items() if value is not None}

    assert findings(prepare(operated, job)) == []


def test_one_agent_in_each_pod_waits_for_the_operator(operated: JobCluster) -> None:
    job = sent(operated, grace_period_seconds=100)
    (template,) = pod_templates(job)
    (container,) = template["spec"]["containers"]
    script = container["command"][2]
    for words in ("exec hyperpodrun", "--nnodes=4", "--server-port=8080"):
        assert words in script
    assert container["ports"] == [{"containerPort": 8080}]
    # Processes get as long for a last checkpoint as the pod leaves them.
    assert "--shutdown-signal=SIGTERM" in script
    assert "--shutdown-timeout=80" in script
    assert "the image has no hyperpodrun: install hyperpod-elastic-agent in it" in script
    # What torchrun waits for is the operator's to tell.
    assert "29500" not in script
    # Whose kubelet starts pods again is for the operator to say.
    assert "restartPolicy" not in template["spec"]
    # Its queue is named by the job and each pod.
    for metadata in metadata_of(job):
        queue = metadata["labels"]["kueue.x-k8s.io/queue-name"]
        assert queue == "hyperpod-ns-production-localqueue"
    # A command of one's own has to run the agent.
    own = {key: value for key, value in JOB.items() if key != "script"}
    told = prepare(operated, own | {"command": ["bash", "run.sh"]})
    assert any("its command has to run that" in note for note in told.notes)


def test_a_program_that_stops_to_report_progress_is_restarted(operated: JobCluster) -> None:
    """A process hangs by a rule that it has matched once: rank 0 alone prints progress."""
    changes = {"script": "ultrascale_training.titan"}
    [rule] = spec_of(sent(operated, **changes))["runPolicy"]["logMonitoringConfiguration"]

    assert findings(sent(operated, **changes)) == []
    assert rule["expectedRecurringFrequencyInSeconds"] == 1800
    assert re.match(rule["logPattern"], "progress step=120/1000 loss=2.31")
    # Other processes never print it: they would hang from the start.
    assert "expectedStartCutOffInSeconds" not in rule


def test_the_operator_reads_what_the_first_process_prints(operated: JobCluster) -> None:
    """Its agent reads a file, which torchrun writes only where it is told to."""
    (ours,) = pod_templates(sent(operated, script="ultrascale_training.titan"))
    (theirs,) = pod_templates(sent(operated))

    script = ours["spec"]["containers"][0]["command"][2]
    assert "--tee=0:1" in script
    assert "--log-dir=/tmp/hyperpod" in script
    assert "--tee" not in theirs["spec"]["containers"][0]["command"][2]


def test_a_slow_node_restarts_a_job_that_asks_for_it(operated: JobCluster) -> None:
    changes = {"script": "ultrascale_training.titan", "restarts": {"stragglers": "restart"}}
    job = sent(operated, **changes)
    [_, rule] = spec_of(job)["runPolicy"]["logMonitoringConfiguration"]
    line = "straggler step=120 node=ip-10-0-0-7 rank=9 seconds=1.4 median=1 ratio=1.40"

    assert findings(job) == []
    assert re.findall(rule["logPattern"], line) == ["1.40"]
    assert (rule["operator"], rule["metricThreshold"]) == ("gteq", 1)


def test_only_the_operator_restarts_slow_jobs_and_only_those_that_tell(
    operated: JobCluster,
) -> None:
    with pytest.raises(ConfigError, match="only programs of this product"):
        sent(operated, restarts={"stragglers": "restart"})
    [wrong] = refusals(None, make_job(restarts={"stragglers": "restart"}))
    assert "stragglers_restart_jobs" in wrong


def test_restarts_of_processes_come_before_those_of_the_job(operated: JobCluster) -> None:
    changes = {"restarts": {"job": 4, "workers": 2}, "ttl_seconds_after_finished": 600}
    policy = spec_of(sent(operated, **changes))["runPolicy"]
    assert policy["restartPolicy"] == {
        "numRestartBeforeFullJobRestart": 2,
        "maxFullJobRestarts": 4,
        "evalPeriodSeconds": 21_600,
    }
    # Two in each of five runs, and four restarts between them.
    assert policy["jobMaxRetryCount"] == 14
    # An ended job stays for its time, and its pods hold no node.
    assert (policy["ttlSecondsAfterFinished"], policy["cleanPodPolicy"]) == (600, "All")
    # Nobody knows what a program of the user's prints.
    assert "logMonitoringConfiguration" not in policy


def test_a_job_goes_on_with_fewer_nodes_and_takes_them_back(operated: JobCluster) -> None:
    job = sent(operated, min_nodes=2)
    spec = spec_of(job)
    (template,) = pod_templates(job)
    (replicas,) = spec["replicaSpecs"]
    env = {each["name"]: each.get("value") for each in template["spec"]["containers"][0]["env"]}
    assert (spec["elasticPolicy"]["minReplicas"], spec["elasticPolicy"]["maxReplicas"]) == (2, 4)
    assert (replicas["replicas"], replicas["maxReplicas"]) == (4, 4)
    assert env["HYPERPOD_SIGNAL_COORDINATION"] == "distributed"
    assert any("elastic_event_detected" in note for note in job.notes)
    # It is up with its fewest pods.
    state = read_workload(HYPERPOD_JOB, hyperpod_job(pods=4, least=2))
    assert (state.wanted, state.least) == (4, 2)


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"kind": "batch", "command": ["true"], "script": None, "nodes": None}, "Job"),
        ({"team": None, "priority": "low", "prefer": ["hyperpod", "eks-spot"], "nodes": 1}, "Job"),
        ({"team": None, "priority": "low", "pool": "eks-spot", "nodes": 1}, "Job"),
    ],
    ids=["batch", "anywhere", "on EC2"],
)
def test_what_is_not_hyperpods_to_resume_stays_kubernetes_own_job(
    operated: JobCluster, changes: dict[str, Any], kind: str
) -> None:
    job = {key: value for key, value in (JOB | changes).items() if value is not None}

    assert prepare(operated, job).objects[-1]["kind"] == kind


# --- closeness ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topology", "annotations"),
    [
        (None, {}),
        ("any", {}),
        ("required", {REQUIRED: f"{LAYER}-3"}),
        ("preferred", {PREFERRED: f"{LAYER}-3"}),
        ({"required": "layer-2"}, {REQUIRED: f"{LAYER}-2"}),
        ({"preferred": "layer-1"}, {PREFERRED: f"{LAYER}-1"}),
    ],
    ids=str,
)
def test_task_governance_is_told_how_close_its_nodes_are_to_be(
    operated: JobCluster, topology: Any, annotations: dict[str, str]
) -> None:
    job = sent(operated, **({} if topology is None else {"topology": topology}))
    for each in metadata_of(job):
        told = each.get("annotations", {})
        assert {key: value for key, value in told.items() if "topology" in key} == annotations


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"topology": "required", "team": None, "pool": "hyperpod", "priority": "low"},
            "topology: closeness_is_given",
        ),
        (
            {"topology": {"required": "layer-4"}},
            "topology.required: closeness_is_given",
        ),
        (
            {"topology": "required", "node_selector": {f"{LAYER}-2": "nn-1"}, "pool": "hyperpod"},
            "topology: closeness_is_given",
        ),
        (
            {"topology": "preferred", "min_nodes": 2},
            "topology: closeness_is_given",
        ),
        (
            {"rendezvous": "c10d"},
            "rendezvous: operated_job_is_plain",
        ),
        (
            {"env": {"NNODES": "4"}},
            "env.NNODES: operated_job_is_plain",
        ),
    ],
    ids=["no team", "layer", "selector", "elastic", "rendezvous", "variable"],
)
def test_what_the_operator_and_its_queues_cannot_do_is_refused(
    operated: JobCluster, changes: dict[str, Any], line: str
) -> None:
    job = {key: value for key, value in (JOB | changes).items() if value is not None}
    with pytest.raises(ConfigError) as error:
        prepare(operated, job)

    assert line in verdicts(error.value)


# --- in the cluster -----------------------------------------------------------------------------


@pytest.fixture
def stub() -> Iterator[StubApiServer]:
    server = StubApiServer()
    server.groups.add("/apis/sagemaker.amazonaws.com/v1")
    given.furnish(server)
    with serve(server) as running:
        yield running


def conditions(*held: str, told: str = "") -> dict[str, Any]:
    """Return a status in which ``held`` hold, the last one last."""
    now = [{"type": each, "status": "True", "message": told} for each in ("Created", *held)]
    return {"conditions": now}


@pytest.mark.parametrize(
    ("status", "phase", "result", "up", "reason"),
    [
        ({}, "Pending", None, False, ""),
        (conditions(), "Pending", None, False, ""),
        (conditions("PodsRunning", "Running"), "Running", None, True, ""),
        (conditions("Running", "Completed"), "Completed", "succeeded", True, ""),
        (conditions("Running", "Failed", told="too many"), "Failed", "failed", False, "too many"),
        (conditions("Suspended", told="no quota"), "Suspended", None, False, "no quota"),
        (conditions("Running", "Faulted", told="a node"), "Faulted", None, False, "a node"),
    ],
)
def test_how_far_it_is_is_what_its_last_condition_says(
    status: dict[str, Any], phase: str, result: str | None, up: bool, reason: str
) -> None:
    state = read_workload(HYPERPOD_JOB, hyperpod_job(restartCount=3, **status))
    assert (state.phase, state.result, state.up, state.reason) == (phase, result, up, reason)
    assert (state.wanted, state.least, state.retries, state.most_retries) == (2, 2, 3, 43)


def test_it_is_followed_read_and_taken_away(stub: StubApiServer, cluster: Cluster) -> None:
    submission.send(cluster, given.manifests(objects=(hyperpod_job(pods=11),), queue=None))
    for index in (10, 2, 0):
        stub.put(f"{given.PODS}/bert-worker-{index}", hyperpod_pod(index, **given.running()))
    stub.write(f"{given.PODS}/bert-worker-2", "2026-11-21T12:00:00Z rank 2", ends=True)

    found = job_status(cluster, "training", "bert")
    choice = logs.Choice(pod="bert-worker-2")

    assert [pod.index for pod in found.pods] == [0, 2, 10]
    assert found.kind == "HyperPodPyTorchJob.sagemaker.amazonaws.com"
    assert [*logs.lines(cluster, "training", "bert", choice, follow=False)] == ["rank 2"]
    gone = cancel(cluster, "training", objects_of(cluster, "training", "bert"))
    assert [str(each) for each in gone] == ["HyperPodPyTorchJob bert"]
    assert stub.find(f"{HYPERPOD_JOBS}/bert") is None


def test_what_takes_its_nodes_is_told(
    operated: JobCluster, stub: StubApiServer, cluster: Cluster
) -> None:
    health = {"sagemaker.amazonaws.com/node-health-status": "Schedulable"}
    room = {"cpu": "95", "memory": "1100Gi", "nvidia.com/gpu": "8"}
    node = {
        "metadata": {"labels": {"ultrascale.dev/pool": "hyperpod"} | health},
        "status": {"allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]},
    }
    stub.put("/api/v1/nodes/hp-1", node)
    holder = given.pod("other-0", "other")
    container = {"name": "worker", "resources": {"requests": {"nvidia.com/gpu": "8"}}}
    other = "/api/v1/namespaces/hyperpod-ns-research/pods/other-0"
    stub.put(other, holder | {"spec": {"nodeName": "hp-1", "containers": [container]}})
    (line,) = waits_for_room(cluster, sent(operated))
    assert line.startswith("0 of its 4 pods fit on the 1 nodes that it may run on: it waits for")


def test_without_the_operator_nothing_is_sent(stub: StubApiServer, cluster: Cluster) -> None:
    stub.groups.remove("/apis/sagemaker.amazonaws.com/v1")

    with pytest.raises(ClusterError, match=r"serves no hyperpodpytorchjobs\.sagemaker"):
        submission.send(cluster, given.manifests(objects=(hyperpod_job(),), queue=None))
