"""No key of a job is without effect: a setting that does nothing is a broken promise."""

from typing import Any

import pytest

from tests.support.config_jobs import LUSTRE
from tests.support.jobs import (
    BATCH,
    DEV,
    IMAGE,
    SERVICE,
    VOLCANO,
    job_cluster,
    make_job,
    prepared,
    sentences,
)
from tests.support.pools import NEURON_POOL, pool_document
from ultrascale import config
from ultrascale.parts.dev.part import DevJob

CLUSTER = job_cluster(
    NEURON_POOL | {"labels": {"example.com/team": "ml"}},
    pool_document(name="gpu", instance_types=["g6e.12xlarge"]),
    storage=LUSTRE,
    serving={"front": {"exposure": "cluster"}},
    scheduling=VOLCANO
    | {
        "priority_classes": {"high": 1000},
        "queues": [{"name": "a"}, {"name": "b"}],
        "rendezvous": {"backend": "etcd", "replicas": 1},
    },
)
# A value of each key with which something else is sent.
COMMON: dict[str, Any] = {
    "pool": "gpu",
    "node_selector": {"example.com/team": "ml"},
    "priority": "high",
    "tolerations": [{"key": "spot", "operator": "Exists"}],
    "resources": {"efa": 0},
    "prefer": ["gpu"],
    "team": "research",
    "namespace": "default",
    "image": "docker.io/example/other:1",
    "command": ["other"],
    "args": ["--lr=1"],
    "env": {"A": "1"},
    "allow_env": ["NCCL_BUFFSIZE"],
    "security": {"user": 1000},
    "service_account": "reads-s3",
    "volumes": [],
    "secrets": {"HF_TOKEN": "hub"},
    "deadline_hours": 2,
    "scratch": "/scratch",
    "annotations": {"example.com/owner": "ml"},
    "init": ["fetch"],
    "patch": {"Job": {"spec": {"maxRetry": 1}}},
    "grace_period_seconds": 60,
}
TRAINING: dict[str, Any] = {
    "recipe": "llama3-8b",
    "model": "Qwen3-8B",
    "nodes": 3,
    "min_nodes": 1,
    "processes_per_node": 8,
    "script": "other.py",
    "role": "trainer",
    "queue": "b",
    "idle": "allow",
    "rendezvous": "c10d",
    "topology": "required",
    "preflight": "device",
    "roles": {"teacher": {}, "student": {}},
    "restarts": {"job": 1},
    "compile_cache": {"model": "bert"},
    "output": "/data/other",
    "durable": True,
    "ttl_seconds_after_finished": 60,
}
ONE_BATCH: dict[str, Any] = {
    "queue": "b",
    "idle": "allow",
    "retries": 1,
    "array": {"size": 3},
    "ttl_seconds_after_finished": 60,
}
SERVING: dict[str, Any] = {
    "nodes": 2,
    "replicas": 2,
    "autoscale": {"metric": "waiting", "target": 5, "max": 2},
    "queue": "b",
    "server": "vllm",
    "port": 80,
    "capacity": "on-demand",
    "health_path": "/health",
    "startup_seconds": 60,
    "model": {"name": "Llama-3.1-8B", "gb_per_second": 0.1},
    "allow_from": ["backend"],
    "model_names": ["chat"],
}
PERSONAL: dict[str, Any] = {"idle_hours": 1, "port": 9999, "queue": "b"}
# They change what `plan` and `check` say and no object: tests of these hold their effect.
OF_THE_PLAN = {"tokens_per_second", "allow_advisories"}
JOBS: dict[type[config.Job], tuple[dict[str, Any], dict[str, Any]]] = {
    config.TrainingJob: (make_job(), TRAINING),
    config.BatchJob: (BATCH | {"resources": {"neuron": 16}}, ONE_BATCH),
    config.ServiceJob: (SERVICE, SERVING),
    DevJob: (DEV | {"resources": {"neuron": 16}}, PERSONAL),
}
CASES = [
    pytest.param(job, {key: value}, id=f"{kind.__name__}.{key}")
    for kind, (job, own) in JOBS.items()
    for key, value in {**COMMON, **own}.items()
]


@pytest.mark.parametrize("kind", JOBS, ids=lambda kind: kind.__name__)
def test_every_key_is_held_to_an_effect(kind: type[config.Job]) -> None:
    held = {*COMMON, *JOBS[kind][1], "kind"}

    whole = config.kinds_of_job()[kind.model_fields["kind"].default]
    assert whole.model_fields.keys() - OF_THE_PLAN == held


@pytest.mark.parametrize(("job", "change"), CASES)
def test_a_key_that_is_stated_is_heeded(job: dict[str, Any], change: dict[str, Any]) -> None:
    changed = {**job, **change}
    if "command" in change:
        changed.pop("script", None)

    if lines := sentences(CLUSTER, changed):
        # A sentence may speak of one role where the key has several.
        named = next(iter(change)).removesuffix("s")
        assert any(named in line for line in lines), lines
        return
    before, after = prepared(CLUSTER, job), prepared(CLUSTER, changed)
    assert (after.objects, after.checks) != (before.objects, before.checks)


@pytest.mark.parametrize(
    ("restarts", "cache"),
    [
        ({"workers": 1}, {"model": "bert", "path": "/data/x"}),
        ({"job": 1}, {"model": "bert", "allow_cold": True}),
    ],
)
def test_keys_within_a_key_are_heeded(restarts: dict[str, int], cache: dict[str, Any]) -> None:
    plain = make_job(compile_cache={"model": "bert"})

    for changed in (plain | {"restarts": restarts}, plain | {"compile_cache": cache}):
        assert prepared(CLUSTER, changed).objects != prepared(CLUSTER, plain).objects


@pytest.mark.parametrize(
    "resources",
    [
        *({"neuron": 1}, {"efa": 0}, {"cpu": 4}, {"memory": "8Gi"}, {"shared_memory": "1Gi"}),
        {"neuron": 0, "cpu": 4, "memory": "8Gi"},
    ],
    ids=str,
)
def test_resources_are_heeded(resources: dict[str, Any]) -> None:
    one = make_job(nodes=1, image=IMAGE)

    changed = prepared(CLUSTER, one, resources=resources)

    assert changed.objects != prepared(CLUSTER, one).objects
