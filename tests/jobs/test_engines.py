"""The pods of a job on every engine: the same, but for the engine's own part."""

import copy
import re
from typing import Any, NamedTuple

import pytest

from tests.support.job_rules import findings, pod_templates
from tests.support.jobs import BATCH, VOLCANO, make_job, prepared
from tests.support.pools import HYPERPOD_POOL, NEURON_POOL, SYSTEM_POOL, make_document
from ultrascale.jobs import JobManifests

HYPERPOD = HYPERPOD_POOL | {"deep_health_checks": True}
FIXED = NEURON_POOL | {"name": "hp", "nodes": {"static": 8}}
KUEUE = {"queueing": "kueue", "queues": [{"name": "research", "prefer": ["hp"]}]}
PRIORITY = {"priority_classes": {"high": 1000}}


class Engine(NamedTuple):
    """An engine on the nodes of one pool."""

    pool: dict[str, Any]  # The pool, called `hp`
    changes: dict[str, Any]  # Keys of the cluster file that choose the engine
    variables: frozenset[str]  # Variables of its pods that tell who they are
    fields: frozenset[str]  # Fields of a pod's spec that say who schedules and restarts it


OF_VOLCANO = frozenset({"POD_IP", "FIRST_INDEX", "POD_GROUP", "ATTEMPT"})
OF_JOBSET = frozenset({"POD_IP", "JOBSET_UID", "ATTEMPT"})
OF_PYTORCH = frozenset({"POD_IP", "JOB_COMPLETION_INDEX"})
SCHEDULER = frozenset({"schedulerName", "restartPolicy"})
RESTARTS = frozenset({"restartPolicy"})
# Of pods that Volcano schedules and no Job of Volcano makes.
QUEUE_OF_VOLCANO = ("scheduling.volcano.sh/queue-name", "volcano.sh/task-spec")
OF_AGENT = frozenset({"POD_IP"})

ENGINES = {
    "Volcano on HyperPod": Engine(HYPERPOD, {"scheduling": VOLCANO}, OF_VOLCANO, SCHEDULER),
    "Kueue on HyperPod": Engine(HYPERPOD, {"scheduling": KUEUE}, OF_JOBSET, RESTARTS),
    "PyTorchJob": Engine(HYPERPOD, {"scheduling": {}}, OF_PYTORCH, RESTARTS),
    "HyperPodPyTorchJob": Engine(
        HYPERPOD, {"scheduling": {}, "hyperpod": {"training_operator": True}}, OF_AGENT, RESTARTS
    ),
    "Volcano": Engine(FIXED, {"scheduling": VOLCANO}, OF_VOLCANO, SCHEDULER),
    "Kueue": Engine(FIXED, {"scheduling": KUEUE}, OF_JOBSET, RESTARTS),
    "none": Engine(
        FIXED, {"scheduling": {}}, frozenset({"POD_IP"}), frozenset({"restartPolicy", "subdomain"})
    ),
}
RICH: dict[str, Any] = {
    "volumes": [{"claim": "data", "mount_path": "/data", "existing": True}],
    "env": {"A": "$(B)", "LANG": "C"},
    "priority": "high",
    "tolerations": [{"key": "spot", "value": "true", "effect": "NoExecute"}],
    "secrets": {"HF_TOKEN": "hub"},
    "annotations": {"example.com/owner": "ml"},
    "init": ["sh", "-c", "true"],
    "service_account": "trainer",
    "args": ["--lr", "1e-4"],
    "grace_period_seconds": 60,
}
JOBS: dict[str, dict[str, Any]] = {
    "script on several nodes": make_job(pool="hp", **RICH),
    "command on several nodes": make_job(pool="hp", script=None, command=["run"], **RICH),
    "script on one node": make_job(pool="hp", nodes=1, **RICH),
    "batch": BATCH | RICH | {"pool": "hp"},
    "array": BATCH | RICH | {"pool": "hp", "array": {"size": 9, "parallelism": 3}},
}
# What an agent is told of the meeting: host, name and index are the engine's.
MEETING = (
    r"--rdzv-endpoint=\S+",
    r'--rdzv-id="[^"]*"',
    r"declare -i index=\S+",
    r"/dev/tcp/[^/]+",
    r"nobody answered at [^:]+",
)


def sent(engine: Engine, job: dict[str, Any]) -> JobManifests:
    changes = copy.deepcopy(engine.changes)
    # Else those whose pods restart together meet by their indexes.
    changes["scheduling"] |= PRIORITY | {"rendezvous": {"backend": "c10d"}}
    return prepared(make_document(pools=[SYSTEM_POOL, engine.pool], **changes), job)


def shared_part(manifests: JobManifests, engine: Engine) -> Any:
    """Return the pod template of a job without the engine's own part."""
    (found,) = pod_templates(manifests)
    template = copy.deepcopy(found)
    spec = template["spec"]
    for annotation in QUEUE_OF_VOLCANO:
        template["metadata"]["annotations"].pop(annotation, None)
    for field in engine.fields:
        spec.pop(field, None)
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        del container["name"]
        # The first pod has the name that the engine gives it.
        own = engine.variables | {"RANK_ZERO_HOST"}
        container["env"] = [each for each in container["env"] if each["name"] not in own]
        # HyperPod's operator speaks to its agent, which stands in the place of torchrun.
        container.pop("ports", None)
        if "hyperpodrun" in str(container.get("command")):
            container["command"] = ["AGENT"]
        container["command"] = [_without_meeting(word) for word in container.get("command", ())]
    return template


def _without_meeting(word: str) -> str:
    for pattern in MEETING:
        word = re.sub(pattern, "MEETING", word)
    return word


@pytest.mark.parametrize("kind", JOBS)
@pytest.mark.parametrize("engine", ENGINES)
def test_pods_are_the_same_on_every_engine_but_for_its_own_part(engine: str, kind: str) -> None:
    own, job = ENGINES[engine], JOBS[kind]
    first = next(each for each in ENGINES.values() if each.pool is own.pool)
    manifests = sent(own, job)

    found, other = shared_part(manifests, own), shared_part(sent(first, job), first)

    if found["spec"]["containers"][0]["command"] == ["AGENT"]:
        other["spec"]["containers"][0]["command"] = ["AGENT"]
    assert found == other
    assert findings(manifests) == []
