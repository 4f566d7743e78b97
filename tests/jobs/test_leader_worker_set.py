"""Services whose replicas span nodes, or wait in a queue: LeaderWorkerSets."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.jobs.test_jobset_examples import fields
from tests.support.cases import for_each
from tests.support.folders import DATA, ROOT
from tests.support.job_rules import findings, pod_templates
from tests.support.jobs import SERVICE, job_cluster, objects, prepared, refusals, sentences
from tests.support.pools import SPOT, pool_document
from tests.support.queued_pools import queued_document
from ultrascale.catalog.leaderworkerset import GROUP_LABEL, WORKER_LABEL
from ultrascale.cluster_api.objects import LEADER_WORKER_SET
from ultrascale.jobs import JobManifests
from ultrascale.jobs.pods import by_rank, read_pod
from ultrascale.jobs.room import pod_kinds
from ultrascale.jobs.workloads import read_workload
from ultrascale.plan.jobs.programs import program

EXAMPLE, EXAMPLE_SERVICE = yaml.safe_load_all((DATA / "lws_examples.yaml").read_text())
LLM = ROOT / "clusters" / "llm-kueue.yaml"
_LAUNCHED = {"provisioner": "karpenter", "zones": ["us-west-2b"], "nodes": {"max": 6}}
LARGE = pool_document(name="large", role="burst", instance_types=["p5.48xlarge"], **_LAUNCHED)
CLUSTER = job_cluster(LARGE)
PARALLEL = ["--model=/models/large", "--tensor-parallel-size=8", "--pipeline-parallel-size=2"]
TWO_NODES: dict[str, Any] = SERVICE | {
    "name": "large",
    "pool": "large",
    "image": "public.ecr.aws/deep-learning-containers/vllm:server-cuda-v2.3",
    "args": PARALLEL,
    "port": 8000,
    "nodes": 2,
    "replicas": 2,
    "command": None,
}


@pytest.fixture(scope="module")
def sent() -> JobManifests:
    return prepared(CLUSTER, TWO_NODES)


def only(manifests: JobManifests, kind: str) -> Any:
    (found,) = objects(manifests, kind)
    return found


def templates(manifests: JobManifests) -> tuple[Any, Any]:
    """Return specification and container of the pods of each kind of a replica."""
    template = only(manifests, "LeaderWorkerSet")["spec"]["leaderWorkerTemplate"]
    return template["leaderTemplate"], template["workerTemplate"]


def containers(manifests: JobManifests) -> tuple[Any, Any]:
    leader, worker = (each["spec"]["containers"][0] for each in templates(manifests))
    return leader, worker


def test_a_service_does_not_take_the_name_at_which_pods_of_a_replica_meet() -> None:
    """LeaderWorkerSet takes a Service of that name for its own, and no pod finds the others."""
    large = {key: value for key, value in TWO_NODES.items() if key not in ("name", "command")}
    cluster = CLUSTER | {"jobs": {"large": large}}
    one = TWO_NODES | {"nodes": 1, "args": ["--model=/models/small", "-tp=8"]}

    (line,) = refusals(cluster, one | {"name": "large-0"})

    assert line.startswith("name: replicas_can_meet")
    assert not refusals(cluster, one | {"name": "larger-0"})


def test_each_object_is_what_the_api_server_takes(sent: JobManifests) -> None:
    assert [each["kind"] for each in sent.objects][-1] == "LeaderWorkerSet"
    assert objects(sent, "Deployment") == []
    assert findings(sent) == []
    # Room is looked for for every pod of a replica.
    assert sent.pods == 4
    assert [count for _, count in pod_kinds(only(sent, "LeaderWorkerSet"))] == [2, 2]
    # They have what training has.
    for container in containers(sent):
        limits = container["resources"]["limits"]
        assert (limits["nvidia.com/gpu"], limits["vpc.amazonaws.com/efa"]) == ("8", "32")
        assert "hugepages-2Mi" in limits
    # The large model of the example is one replica of two nodes.
    job = prepared(LLM, "chat-large")
    assert only(job, "LeaderWorkerSet")["spec"]["leaderWorkerTemplate"]["size"] == 2
    assert findings(job) == []


def test_all_pods_start_one_vllm_that_meets_at_the_first(sent: JobManifests) -> None:
    leader, worker = containers(sent)

    assert leader["command"] == worker["command"]
    assert leader["command"][0] == "sh"
    together = leader["command"][leader["command"].index("python3") :]
    assert together[4:6] == ["vllm", "vllm"]
    assert together[5:] == [
        *("vllm", "serve", "/models/large"),
        *PARALLEL[1:],
        "--distributed-executor-backend=mp",
    ]
    (address,) = (each for each in leader["env"] if each["name"] == "VLLM_HOST_IP")
    assert address["valueFrom"]["fieldRef"]["fieldPath"] == "status.podIP"


def test_clients_and_probes_reach_the_first_pod_alone(sent: JobManifests) -> None:
    leader, worker = containers(sent)
    service, spec = only(sent, "Service"), only(sent, "LeaderWorkerSet")["spec"]
    assert service["spec"]["selector"]["leaderworkerset.sigs.k8s.io/worker-index"] == "0"
    probes = {"startupProbe", "readinessProbe", "livenessProbe"}
    assert probes <= leader.keys()
    # It has no HTTP server.
    assert not {*probes, "ports"} & worker.keys()
    assert leader["lifecycle"] == worker["lifecycle"]
    # The Service of names has another name than that of clients.
    assert service["metadata"]["name"] == "large"
    assert spec["networkConfig"]["subdomainPolicy"] == "UniquePerReplica"


def test_the_first_pod_is_given_the_time_in_which_the_others_get_their_nodes(
    sent: JobManifests,
) -> None:
    probe = containers(sent)[0]["startupProbe"]
    alone = only(prepared(CLUSTER, TWO_NODES | {"nodes": 1, "args": ["m", "-tp=8"]}), "Deployment")
    own = alone["spec"]["template"]["spec"]["containers"][0]["startupProbe"]

    waits = (probe["failureThreshold"] - own["failureThreshold"]) * probe["periodSeconds"]
    assert waits >= 1200


@for_each(
    {
        "room for another": (LARGE, {"maxSurge": 1, "maxUnavailable": 0}),
        "nodes for half of another": (
            LARGE | {"nodes": {"max": 5}},
            {"maxSurge": 0, "maxUnavailable": 1},
        ),
    }
)
def test_an_update_keeps_capacity_where_a_whole_replica_has_room(
    pool: dict[str, Any], rolling: dict[str, int]
) -> None:
    job = prepared(job_cluster(pool), TWO_NODES)
    strategy = only(job, "LeaderWorkerSet")["spec"]["rolloutStrategy"]

    assert strategy["rollingUpdateConfiguration"] == {"partition": 0, **rolling}


@for_each({"on demand": (None, 1), "spot": (SPOT, 4)})
def test_a_drain_takes_one_replica_and_on_spot_none_waits(purchase: Any, pods: int) -> None:
    pool = LARGE if purchase is None else LARGE | {"purchase": purchase}
    budget = only(prepared(job_cluster(pool), TWO_NODES), "PodDisruptionBudget")

    assert budget["spec"]["maxUnavailable"] == pods


class Group:
    """Pods of a replica, as programs of this machine that meet at a port of it."""

    def __init__(self, size: int, *program: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.size, self.program = size, program

    def start(self, index: int) -> "subprocess.Popen[str]":
        together = [program("start_together"), str(self.port), "vllm"]
        return self.run(index, [sys.executable, "-c", *together, *self.program])

    def run(self, index: int, words: Sequence[str], **env: str) -> "subprocess.Popen[str]":
        names = {"LEADER_ADDRESS": "127.0.0.1", "GROUP_SIZE": self.size, "WORKER_INDEX": index}
        own = {f"LWS_{name}": str(value) for name, value in names.items()}
        return subprocess.Popen(
            words, env=os.environ | own | env, stdout=subprocess.PIPE, text=True
        )


def ends(pod: "subprocess.Popen[str]") -> tuple[int, str]:
    output, _ = pod.communicate(timeout=60)
    return pod.returncode, output


def test_programs_of_a_replica_start_once_all_of_them_are_there() -> None:
    group = Group(3, "sh", "-c", 'echo "$@"; sleep 1', "vllm", "serve")
    first, second = group.start(0), group.start(2)
    time.sleep(1)
    assert (first.poll(), second.poll()) == (None, None)
    # A pod whose program starts anew before the others are there counts once.
    second.kill()
    pods = [first, group.start(1), group.start(2)]

    found = [ends(pod) for pod in pods]

    assert [status for status, _ in found] == [0, 0, 0]
    for index, (_, output) in enumerate(found):
        added = " --headless" if index else ""
        line = f"serve --nnodes=3 --node-rank={index} --master-addr=127.0.0.1{added}"
        assert line in output.splitlines()
    ends(second)


@pytest.mark.parametrize("crashes", [0, 1])
def test_a_program_that_ends_takes_its_replica_along(crashes: int) -> None:
    """The kubelet then starts each anew, with a pause that grows, and keeps its last lines."""
    script = f'case "$*" in *rank={crashes}*) echo why; exit 3;; esac; exec sleep 60'
    group = Group(2, "sh", "-c", script, "vllm")
    pods = [group.start(index) for index in range(2)]

    found = [ends(pod) for pod in pods]

    assert found[crashes][0] == 3
    assert found[crashes][1].rstrip().endswith("why")
    assert found[1 - crashes][0] == 1
    assert f"pod {crashes} of this replica has ended" in found[1 - crashes][1]
    # They meet again.
    assert [ends(pod)[0] for pod in [group.start(1), group.start(0)]].count(3) == 1


def test_a_pod_that_stops_hands_sigterm_to_its_program() -> None:
    script = "trap 'echo drained; exit 0' TERM; echo up; while :; do sleep 0.1; done"
    group = Group(2, "sh", "-c", script, "vllm")
    pods = [group.start(index) for index in range(2)]
    for pod in pods:
        assert pod.stdout is not None
        while pod.stdout.readline() != "up\n":
            pass
    for pod in pods:
        pod.terminate()

    assert [ends(pod) for pod in pods] == [(0, "drained\n")] * 2


def test_a_pod_that_waits_for_its_replica_stops_at_once() -> None:
    """The first process of a container would otherwise wait until it is killed."""
    pod = Group(2, "sleep", "60").start(1)
    assert pod.stdout is not None
    assert pod.stdout.readline().startswith("wait for the first pod")
    pod.terminate()

    assert ends(pod)[0] == 128 + signal.SIGTERM


OWN = TWO_NODES | {"server": "other", "command": ["./serve"], "args": ["--all"]}


@for_each({"vLLM": (TWO_NODES,), "a program of the user's own": (OWN,)})
def test_no_group_that_crashes_is_made_anew_without_a_trace(job: dict[str, Any]) -> None:
    """LeaderWorkerSet would delete its pods at once and for ever, with counts and last lines."""
    sent = prepared(CLUSTER, job | {"init": ["./fetch"]})

    spec = only(sent, "LeaderWorkerSet")["spec"]
    assert spec["leaderWorkerTemplate"]["restartPolicy"] == "None"
    assert any(note.startswith("init runs on each of the 2 pods") for note in sent.notes)


def test_a_program_of_the_users_own_takes_its_replica_along(tmp_path: Path) -> None:
    script = 'echo "ran $*"; [ "$LWS_WORKER_INDEX" = 0 ] || exec sleep 60; echo why; exit 3'
    job = OWN | {"command": ["sh", "-c", script], "args": ["own", "$(A)"], "resources": {"efa": 0}}
    group = Group(2)
    words = [word.replace("$$", "$") for word in containers(prepared(CLUSTER, job))[0]["command"]]
    words[words.index("29399")] = str(group.port)

    found = [ends(pod) for pod in [group.run(index, words) for index in range(2)]]

    assert [status for status, _ in found] == [3, 1]
    assert found[0][1].splitlines()[-2:] == ["ran $(A)", "why"]
    assert "ran $(A)\npod 0 of this replica has ended" in found[1][1]
    # Without Python each starts alone.
    (tmp_path / "sh").symlink_to("/bin/sh")
    alone = group.run(0, ["/bin/sh", *words[1:]], PATH=str(tmp_path))
    assert ends(alone) == (3, "ran $(A)\nwhy\n")


@for_each(
    {
        "a line of a shell": {"command": ["bash", "-c", "./serve"], "args": []},
        "options of nodes": {"command": ["vllm", "serve", "m", "--nnodes=2"], "args": PARALLEL},
        "another server": {"server": "other", "command": ["./serve"], "args": ["--all"]},
    }
)
def test_a_program_that_is_not_known_starts_as_it_says(changes: dict[str, Any]) -> None:
    leader, worker = containers(prepared(CLUSTER, TWO_NODES | changes))

    own = [*changes["command"], *changes["args"]]
    assert leader["command"] == worker["command"]
    assert leader["command"][-len(own) - 1 :] == ["own", *own]


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "a server that nobody can start over nodes": (
        LARGE,
        {"server": "other"},
        "nodes: replicas_can_meet",
    ),
    "zones apart": (
        LARGE | {"zones": ["us-west-2a", "us-west-2b"], "efa": "none"},
        {},
        "nodes: replicas_have_whole_nodes",
    ),
}


@for_each(REFUSED)
def test_nodes_that_could_not_serve_together_are_refused(
    pool: dict[str, Any], changes: dict[str, Any], line: str
) -> None:
    assert line in refusals(job_cluster(pool), TWO_NODES | changes)


class TestQueue:
    """A service in a queue of Kueue holds quota of it."""

    CLUSTER = queued_document({"name": "research", "prefer": ["reserved", "burst"]})
    JOB = TWO_NODES | {"pool": "reserved", "queue": "research", "nodes": 1, "port": 8080}

    @pytest.fixture
    def queued(self) -> JobManifests:
        return prepared(self.CLUSTER, self.JOB | {"args": [], "image": SERVICE["image"]})

    def test_it_waits_there_as_groups_even_of_one_pod(self, queued: JobManifests) -> None:
        found = only(queued, "LeaderWorkerSet")
        spec = found["spec"]
        assert found["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "research"
        assert spec["leaderWorkerTemplate"]["size"] == 1
        # Workers of which there are none would be a kind of pods of its own to Kueue.
        (template,) = pod_templates(queued)
        assert "readinessProbe" in template["spec"]["containers"][0]
        assert [count for _, count in pod_kinds(found)] == [2]
        assert queued.local_queue == "research"
        assert findings(queued) == []
        # An update asks for no quota beside its own.
        assert spec["rolloutStrategy"]["rollingUpdateConfiguration"]["maxSurge"] == 0

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            (
                {"queue": None},
                "pool: service_stays_beside_queues",
            ),
            ({"startup_seconds": 3600}, "queue: service_starts_in_time"),
            ({"replicas": 40}, "queue_can_admit_the_pods"),
        ],
    )
    def test_what_kueue_would_not_admit_is_refused(
        self, changes: dict[str, Any], words: str
    ) -> None:
        lines = refusals(self.CLUSTER, self.JOB | changes)
        assert any(words in line for line in lines), lines

    @pytest.mark.parametrize(("replicas", "most"), [(10, 39), (11, 38)])
    def test_a_name_that_kueue_could_not_write_on_its_pods_is_refused(
        self, replicas: int, most: int
    ) -> None:
        scaled = self.JOB | {"nodes": 1, "replicas": replicas}

        lines = sentences(self.CLUSTER, scaled | {"name": "n" * (most + 1)})

        assert any("name: too long a name for a service in a queue" in line for line in lines)
        assert any(f"use at most {most} characters" in line for line in lines)
        assert not any(
            "too long" in each for each in sentences(self.CLUSTER, scaled | {"name": "n" * most})
        )


def test_the_nodes_of_a_replica_are_close_where_its_queue_knows_the_network() -> None:
    cluster = queued_document({"name": "research", "prefer": ["reserved"], "topology": True})
    job = TWO_NODES | {"pool": "reserved", "queue": "research"}

    for template in templates(prepared(cluster, job)):
        annotations = template["metadata"]["annotations"]
        layer = annotations["kueue.x-k8s.io/podset-preferred-topology"]
        assert layer.startswith("topology.k8s.aws/network-node-layer-")
        assert annotations["kueue.x-k8s.io/podset-group-name"] == "large"


@pytest.mark.parametrize(
    ("counts", "up"),
    [
        ({"replicas": 2, "readyReplicas": 2, "updatedReplicas": 2}, True),
        # One starts.
        ({"replicas": 2, "readyReplicas": 1, "updatedReplicas": 2}, False),
        # An update has begun, and then stands beside the others.
        ({"replicas": 2, "readyReplicas": 2, "updatedReplicas": 1}, False),
        ({"replicas": 3, "readyReplicas": 3, "updatedReplicas": 2}, False),
    ],
)
def test_a_service_is_up_once_each_replica_of_this_revision_serves(
    counts: dict[str, int], up: bool, sent: JobManifests
) -> None:
    manifest = only(sent, "LeaderWorkerSet")
    state = read_workload(LEADER_WORKER_SET, {**manifest, "status": counts})

    assert (state.up, state.wanted) == (up, 4)


def test_pods_that_take_requests_come_first() -> None:
    pods = [
        read_pod({"metadata": {"name": name, "labels": {WORKER_LABEL: index, GROUP_LABEL: group}}})
        for name, group, index in (("l-0-1", "0", "1"), ("l-1", "1", "0"), ("l-0", "0", "0"))
    ]

    assert [pod.name for pod in by_rank(pods, [])] == ["l-0", "l-1", "l-0-1"]


# Of a field that upstream's example has and we write otherwise, or not at all.
POD = "spec.leaderWorkerTemplate.{}Template.spec"
_OF_EACH = {
    **dict.fromkeys(("name", "image", "env[].name", "env[].value"), "the user's"),
    "resources.limits.memory": "a share of the node",
    "resources.limits.ephemeral-storage": "images and models have disks",
    "resources.requests.ephemeral-storage": "images and models have disks",
    "resources.requests.cpu": "a share of the node",
    "volumeMounts[].name": "ours",
}
_PROBE = f"{POD.format('leader')}.containers[].readinessProbe"
OTHERWISE = {
    "metadata.name": "the user's",
    "spec.leaderWorkerTemplate.restartPolicy": "pods start anew in place, together",
    "spec.leaderWorkerTemplate.leaderTemplate.metadata.labels": "the worker's index says the same",
    **{
        f"{POD.format(kind)}.containers[].{field}": why
        for kind in ("leader", "worker")
        for field, why in _OF_EACH.items()
    },
    **{f"{POD.format(kind)}.volumes[].name": "ours" for kind in ("leader", "worker")},
    **{
        f"{POD.format(kind)}.volumes[].emptyDir.sizeLimit": "a share of the memory"
        for kind in ("leader", "worker")
    },
    f"{POD.format('leader')}.containers[].ports[].containerPort": "the user's",
    f"{_PROBE}.tcpSocket.port": "vLLM tells its health",
    f"{_PROBE}.initialDelaySeconds": "the start-up probe comes before",
}


def test_what_upstream_writes_we_write_or_say_why_not(sent: JobManifests) -> None:
    ours: dict[str, set[str]] = {}
    for path, value in fields(only(sent, "LeaderWorkerSet")):
        ours.setdefault(path, set()).add(str(value))

    differing = {path for path, value in fields(EXAMPLE) if str(value) not in ours.get(path, set())}

    assert differing == {*OTHERWISE}
    assert only(sent, "Service")["spec"]["type"] == EXAMPLE_SERVICE["spec"]["type"]
