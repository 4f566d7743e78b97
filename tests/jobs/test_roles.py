"""Several kinds of pods in one gang: they start together, find each other, and end with the first.

Sources of the names of their hosts:
    https://github.com/kubernetes-sigs/jobset/tree/v0.12.0/pkg/util/placement
    https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/controllers/job/plugins/svc/svc.go
"""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.etcd_server import free_ports
from tests.support.job_containers import Image, running
from tests.support.job_rules import findings, pod_templates
from tests.support.jobs import IMAGE, KUEUE, VOLCANO, job_cluster, large_cluster, prepared, refusals
from tests.support.pools import POOL, SPOT, pool_document
from tests.support.verdicts import verdicts
from ultrascale.errors import ConfigError
from ultrascale.jobs import JobManifests
from ultrascale.jobs.manifests import kind_of
from ultrascale.jobs.pods import place_of

ENGINES = {"volcano": VOLCANO, "kueue": KUEUE}
# Where each engine writes the number of a pod of its task or role.
INDEX = {
    "volcano": "metadata.annotations['volcano.sh/task-index']",
    "kueue": "metadata.annotations['batch.kubernetes.io/job-completion-index']",
}
HOST = {"volcano": "post-{role}-{index}.post", "kueue": "post-{role}-0-{index}.post"}
TRAIN = POOL | {"nodes": {"static": 4}}
SPARE = pool_document(name="spare", instance_types=["g6e.12xlarge"])
_ON_SPARE = {"pool": "spare", "resources": {"gpu": 1}}
ROLES: dict[str, Any] = {
    "rollout": {"pool": "spare", "nodes": 2, "command": ["python3", "-m", "rl.rollout"]},
    "trainer": {"nodes": 2, "script": "rl.train", "env": {"LR": "1"}},
    "reward": {**_ON_SPARE, "image": f"{IMAGE}-r", "command": ["reward"]},
}


JUDGE: dict[str, Any] = {"command": ["judge"], "resources": {"gpu": 1}}


def job(**changes: Any) -> dict[str, Any]:
    stated = {"name": "post", "pool": "train", "image": IMAGE, "env": {"A": "1"}}
    return {**stated, "roles": ROLES, **changes}


def cluster(engine: str, **scheduling: Any) -> dict[str, Any]:
    return job_cluster(TRAIN, SPARE, scheduling=ENGINES[engine] | scheduling)


def with_role(name: str, **keys: Any) -> dict[str, Any]:
    return ROLES | {name: ROLES[name] | keys}


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def sent(engine: str) -> JobManifests:
    return prepared(cluster(engine), job())


def containers(manifests: JobManifests) -> dict[str, Any]:
    """Return the container of each role."""
    found = [template["spec"]["containers"][0] for template in pod_templates(manifests)]
    return {each["name"]: each for each in found}


def variables(container: Any) -> dict[str, str]:
    return {
        each["name"]: each["value"]
        if "value" in each
        else each["valueFrom"]["fieldRef"]["fieldPath"]
        for each in container["env"]
    }


def test_each_role_has_its_own_pods_in_one_object_that_starts_whole(
    sent: JobManifests, engine: str
) -> None:
    (workload,) = sent.objects
    spec: Any = workload["spec"]
    if engine == "volcano":
        pods = {each["name"]: each["replicas"] for each in spec["tasks"]}
        assert spec["minAvailable"] == 5
    else:
        jobs = spec["replicatedJobs"]
        pods = {each["name"]: each["template"]["spec"]["completions"] for each in jobs}
    found = containers(sent)
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    pools = [
        template["spec"]["affinity"]["nodeAffinity"][required]["nodeSelectorTerms"][0][
            "matchExpressions"
        ][0]["values"]
        for template in pod_templates(sent)
    ]
    # The role whose success ends the job comes first.
    assert [*pods.items()] == [("trainer", 2), ("rollout", 2), ("reward", 1)]
    assert pools == [["train"], ["spare"], ["spare"]]
    gpus = {name: each["resources"]["limits"]["nvidia.com/gpu"] for name, each in found.items()}
    assert gpus == {"trainer": "8", "rollout": "4", "reward": "1"}
    assert [found[name]["image"] for name in pods] == [IMAGE, IMAGE, f"{IMAGE}-r"]
    assert found["trainer"]["command"][0] == "bash"
    assert found["rollout"]["command"] == ["python3", "-m", "rl.rollout"]
    assert (sent.pods, sent.container) == (5, "")
    assert findings(sent) == []


def test_each_pod_is_told_its_role_and_the_hosts_of_all(sent: JobManifests, engine: str) -> None:
    def hosts(role: str, pods: int) -> str:
        return ",".join(HOST[engine].format(role=role, index=index) for index in range(pods))

    for name, container in containers(sent).items():
        told = variables(container)
        assert told["ROLE"] == name
        assert told["ROLE_INDEX"] == INDEX[engine]
        assert told["TRAINER_HOSTS"] == hosts("trainer", 2)
        assert told["ROLLOUT_HOSTS"] == hosts("rollout", 2)
        assert told["REWARD_HOSTS"] == hosts("reward", 1)
        assert told["A"] == "1"
        assert told.get("LR") == ("1" if name == "trainer" else None)
        first = HOST[engine].format(role="rollout", index=0)
        assert told.get("RANK_ZERO_HOST") == (first if name == "rollout" else None)


def test_each_role_with_a_script_meets_for_itself(engine: str) -> None:
    """Torchrun of two roles at one meeting would make one world of them."""
    roles = ROLES | {"student": {"nodes": 2, "script": "rl.student"}}
    found = containers(prepared(cluster(engine, rendezvous={"backend": "c10d"}), job(roles=roles)))

    scripts = {name: found[name]["command"][2] for name in ("trainer", "student")}

    for name, script in scripts.items():
        assert f"--rdzv-endpoint={HOST[engine].format(role=name, index=0)}:29500" in script
        (run,) = (line for line in script.splitlines() if "--rdzv-id" in line)
        assert f'-{name}"' in run


def test_the_job_ends_with_the_role_that_has_a_script_or_the_first(
    sent: JobManifests, engine: str
) -> None:
    spec: Any = sent.objects[0]["spec"]
    if engine == "kueue":
        assert spec["successPolicy"] == {"operator": "All", "targetReplicatedJobs": ["trainer"]}
    else:
        policies = {each["name"]: each.get("policies", []) for each in spec["tasks"]}
        assert policies["trainer"] == [
            # Another role's program may mean anything by it.
            {"exitCode": 2, "action": "TerminateJob"},
            {"event": "TaskCompleted", "action": "CompleteJob"},
        ]
        assert policies["rollout"] == policies["reward"] == []
    assert "ends when all pods of role trainer" in sent.notes[0]
    roles = {name: {"command": [name]} for name in ("judge", "actor")}
    assert (
        "ends when all pods of role judge" in prepared(cluster(engine), job(roles=roles)).notes[0]
    )


def test_a_lost_pod_restarts_the_job_unless_its_role_says_otherwise(
    sent: JobManifests, engine: str
) -> None:
    alone = prepared(cluster(engine), job(roles=with_role("rollout", when_lost="restart-role")))
    both: list[Any] = [sent.objects[0]["spec"], alone.objects[0]["spec"]]
    if engine == "volcano":
        lost = {"events": ["PodEvicted", "PodFailed"], "action": "RestartJob"}
        assert [spec["policies"] for spec in both] == [[lost], [lost]]
        assert both[1]["tasks"][1]["policies"] == [lost | {"action": "RestartPod"}]
        # Volcano counts each of its two pods.
        assert [spec["maxRetry"] for spec in both] == [11, 21]
        return
    before, after = ([each["template"]["spec"] for each in spec["replicatedJobs"]] for spec in both)
    assert [each["backoffLimit"] for each in before] == [0, 0, 0]
    assert ["backoffLimit" in each for each in after] == [True, False, True]
    assert (after[1]["backoffLimitPerIndex"], after[1]["maxFailedIndexes"]) == (10, 0)
    assert after[1]["podFailurePolicy"]["rules"][0]["action"] == "Ignore"
    rules = [each["name"] for each in both[1]["failurePolicy"]["rules"]]
    assert rules == ["exhausted", "disrupted", "mistake"]
    assert findings(alone) == []


def test_a_role_of_torchrun_starts_anew_as_a_whole_where_the_scheduler_can() -> None:
    """Volcano has RestartPartition; the others of the job go on."""
    roles = with_role("trainer", when_lost="restart-role")
    sent = prepared(cluster("volcano"), job(roles=roles))
    spec: Any = sent.objects[0]["spec"]
    trainer = next(task for task in spec["tasks"] if task["name"] == "trainer")
    script = containers(sent)["trainer"]["command"][2]

    assert findings(sent) == []
    assert trainer["policies"][-1]["action"] == "RestartPartition"
    assert trainer["partitionPolicy"] == {
        "totalPartitions": 1,
        "partitionSize": 2,
        "minPartitions": 1,
    }
    assert spec["policies"][-1]["action"] == "RestartJob"
    # All of them come back: ranks are fixed, and a process that fails ends its pod.
    assert "--rdzv-backend=static" in script
    assert "--max-restarts=0" in script


def test_peers_of_a_pod_that_comes_back_meet_it_again(engine: str) -> None:
    """On Volcano where the job asks for a rendezvous that can do it."""
    roles = with_role("trainer", when_lost="restart-role")
    stated = job(roles=roles, **({"rendezvous": "c10d"} if engine == "volcano" else {}))
    script = containers(prepared(cluster(engine), stated))["trainer"]["command"][2]

    # torchrun counts a peer that is lost as a restart of those that stay.
    assert "--max-restarts=100" in script
    # Volcano gives the new pod another number of the attempt than its peers have.
    assert ("ATTEMPT" in script) == (engine == "kueue")


def test_the_number_of_a_pod_runs_through_the_roles(sent: JobManifests, engine: str) -> None:
    """`ultrascale logs --rank 3` reads the second rollout."""
    (workload,) = sent.objects

    labels = place_of(3, [(kind_of(workload), workload)])

    role, index = {
        "volcano": ("volcano.sh/task-spec", "volcano.sh/task-index"),
        "kueue": (
            "jobset.sigs.k8s.io/replicatedjob-name",
            "batch.kubernetes.io/job-completion-index",
        ),
    }[engine]
    assert (labels[role], labels[index]) == ("rollout", "1")


def test_what_the_job_says_of_its_pods_holds_for_each_role(engine: str) -> None:
    stated = job(
        secrets={"HF_TOKEN": "hugging-face"},
        scratch="/scratch",
        init=["prepare"],
        annotations={"example.com/a": "b"},
        deadline_hours=1,
        roles=with_role("rollout", when_lost="restart-role"),
    )
    sent = prepared(cluster(engine), stated)

    for template in pod_templates(sent):
        container = template["spec"]["containers"][0]
        secrets = {each["name"]: each.get("valueFrom", {}) for each in container["env"]}
        assert secrets["HF_TOKEN"]["secretKeyRef"]["name"] == "hugging-face"
        assert "/scratch" in [each["mountPath"] for each in container["volumeMounts"]]
        assert template["spec"]["initContainers"][0]["command"][-1] == "prepare"
        assert template["metadata"]["annotations"]["example.com/a"] == "b"
    spec: Any = sent.objects[0]["spec"]
    if engine == "volcano":
        # The end of the time is no loss of a pod.
        late, lost = spec["tasks"][1]["policies"]
        assert (late["action"], lost["action"]) == ("TerminateJob", "RestartPod")
    else:
        jobs = [each["template"]["spec"] for each in spec["replicatedJobs"]]
        assert {each["activeDeadlineSeconds"] for each in jobs} == {3600}
    assert dict(sent.secrets) == {"hugging-face": ("HF_TOKEN",)}
    assert findings(sent) == []


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "a role without a program": (
        "kueue",
        job(roles={"trainer": {}}),
        "roles.trainer.script: program_is_named",
    ),
    "a job without an image": (
        "kueue",
        job(image=None),
        "roles.rollout.image: program_is_named",
    ),
    "more nodes than the pool of two roles has": (
        "volcano",
        job(roles=ROLES | {"student": {"nodes": 3, "command": ["student"]}}),
        "roles.student.nodes: roles_have_nodes",
    ),
    "a GPU of a node that another role has to itself": (
        "volcano",
        job(roles={"trainer": {"nodes": 4, "script": "a.py"}, "judge": JUDGE}),
        "roles.judge.nodes: roles_have_nodes",
    ),
    "memory that a node of its pool has not": (
        "kueue",
        job(roles=with_role("reward", resources={"memory": "4Ti"})),
        "roles.reward.resources.memory: resources_fit",
    ),
    "a queue that never holds all roles": (
        "volcano",
        job(queue="small"),
        "queue: queue_holds_the_roles",
    ),
    "one group of nodes for all roles": (
        "volcano",
        job(topology="required", roles={"trainer": ROLES["trainer"], "judge": {"command": ["a"]}}),
        "topology: roles_can_be_close",
    ),
    "a name that makes those of pods too long": (
        "kueue",
        job(name="p" * 40, roles={"a23456789012x": {"nodes": 2, "command": ["a"]}}),
        "name: pod_names_fit",
    ),
}


@pytest.mark.parametrize(("engine", "stated", "line"), REFUSED.values(), ids=REFUSED)
def test_roles_that_cannot_run_are_refused_at_their_key(
    engine: str, stated: dict[str, Any], line: str
) -> None:
    more: dict[str, Any] = {}
    if engine == "volcano":
        queues = [{"name": "small", "capability": {"nvidia.com/gpu": "24"}}, {"name": "large"}]
        more = {"queues": queues, "topology_aware": True}
    stated = {key: value for key, value in stated.items() if value is not None}

    assert line in refusals(cluster(engine, **more), stated)


def test_hosts_that_no_variable_holds_are_refused() -> None:
    roles = {"trainer": {"nodes": 8_000, "command": ["a"]}, "judge": {"command": ["b"]}}
    line = "roles.trainer.nodes: hosts_of_roles_fit"
    for scheduling in ENGINES.values():
        assert line in refusals(large_cluster(scheduling=scheduling), job(roles=roles, env={}))
    line = "roles: graphs_are_of_one_role"
    with pytest.raises(ConfigError, match="no single run compiles") as refused:
        prepared(cluster("volcano"), job(), precompile=True)
    assert line in verdicts(refused.value)


# What runs in each pod: it listens under its own name, and passes on what it is told.
PROGRAM = """
import os, socket, sys, time
port, role = int(sys.argv[1]), os.environ["ROLE"]
mine = os.environ[role.upper() + "_HOSTS"].split(",")[int(os.environ["ROLE_INDEX"])]
def hear(server):
    peer, _ = server.accept()
    with peer, peer.makefile() as said:
        return said.readline().strip()
def tell(host, words):
    for _ in range(400):
        try:
            with socket.create_connection((host, port)) as peer:
                return peer.sendall(words.encode() + b"\\\\n")
        except ConnectionRefusedError:
            time.sleep(0.02)
    sys.exit(f"{host} does not answer")
with socket.create_server((mine, port)) as server:
    if role == "rollout":
        [judge] = os.environ["REWARD_HOSTS"].split(",")
        tell(judge, "sample of " + mine)
    elif role == "reward":
        for _ in os.environ["ROLLOUT_HOSTS"].split(","):
            tell(os.environ["TRAINER_HOSTS"].split(",")[0], hear(server) + " judged by " + mine)
    else:
        print(sorted(hear(server) for _ in os.environ["ROLLOUT_HOSTS"].split(",")))
"""
# The cluster's DNS: a name that it does not know is an error, and no address.
RESOLVER = """
import json, os, socket
known = json.loads(os.environ["CLUSTER_DNS"])
ask = socket.getaddrinfo
socket.getaddrinfo = lambda host, *rest, **more: ask(known[host], *rest, **more)
bind = socket.socket.bind
socket.socket.bind = lambda self, at: bind(self, (known[at[0]], at[1]))
"""


def test_processes_of_three_roles_talk_by_the_names_and_variables_that_they_are_given(
    engine: str, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    pods = {"trainer": 1, "rollout": 2, "reward": 1}
    command = ["python3", "-m", "program", port]
    roles = {name: {"nodes": count, "command": command} for name, count in pods.items()}
    found = containers(prepared(cluster(engine), job(roles=roles)))
    (tmp_path / "program.py").write_text(PROGRAM.replace("\\\\", "\\"))
    (tmp_path / "sitecustomize.py").write_text(RESOLVER)
    # As the services of JobSet and Volcano tell them, an address a pod.
    names = [HOST[engine].format(role=role, index=n) for role in pods for n in range(pods[role])]
    dns = json.dumps({name: f"127.0.0.{number}" for number, name in enumerate(names, start=2)})
    image = Image(tmp_path)

    with ExitStack() as stack:
        started: dict[str, Any] = {}
        for role in ("rollout", "reward", "trainer"):
            for index in range(pods[role]):
                env = variables(found[role])
                env = {
                    name: str(index) if value == INDEX[engine] else value
                    for name, value in env.items()
                }
                env |= {"CLUSTER_DNS": dns, "PYTHONPATH": str(tmp_path)}
                stated = [
                    str(tmp_path / word) if word.endswith(".py") else word
                    for word in found[role]["command"]
                ]
                started[f"{role}-{index}"] = stack.enter_context(running(stated, image, env))
        output = {name: process.communicate(timeout=20)[0] for name, process in started.items()}

    judge = HOST[engine].format(role="reward", index=0)
    told = [
        f"sample of {HOST[engine].format(role='rollout', index=index)} judged by {judge}"
        for index in range(2)
    ]
    assert output == {"rollout-0": "", "rollout-1": "", "reward-0": "", "trainer-0": f"{told}\n"}


def test_a_role_on_spot_nodes_is_told_how_the_others_go_on(engine: str) -> None:
    types = ["g6.12xlarge", "g6e.12xlarge", "g5.12xlarge"]
    spot = pool_document(name="spare", instance_types=types, purchase=SPOT, zones=None, efa="none")
    pools = job_cluster(TRAIN, spot, scheduling=ENGINES[engine])
    words = "when_lost: restart-role of rollout keeps the others running"
    roles = {name: ROLES[name] for name in ("trainer", "rollout")}
    alone = roles | {"rollout": ROLES["rollout"] | {"when_lost": "restart-role"}}

    told = [" ".join(prepared(pools, job(roles=each)).notes) for each in (roles, alone)]

    assert [words in notes for notes in told] == [True, False]
