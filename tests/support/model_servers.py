"""Pods of a model server as they are submitted, and what a real one answered."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from tests.support.fleet import Object
from tests.support.folders import ROOT
from tests.support.jobs import SERVICE, job_cluster, prepared
from tests.support.pools import pool_document

IDLE, BUSY = (
    (ROOT / "tests" / "data" / "vllm" / f"metrics-{name}.txt").read_text()
    for name in ("idle", "busy")
)
"""Metrics of vLLM 0.32: of an idle server, and of the same one some time later, under load."""
VLLM: dict[str, Any] = {
    "image": "docker.io/vllm/vllm-openai:v0.33.0",
    "command": None,
    "args": ["--model=/models/chat"],
}


@cache
def submitted() -> tuple[Object, ...]:
    """Return the objects that are submitted for a service of vLLM."""
    cluster = job_cluster(pool_document(instance_types=["g6e.12xlarge"]))
    return tuple(prepared(cluster, SERVICE | VLLM, name="chat").objects)


def template() -> Object:
    """Return the template of its pods."""
    (deployment,) = (each for each in submitted() if each["kind"] == "Deployment")
    return deployment["spec"]["template"]


def server(name: str, labels: Mapping[str, str] | None = None, *, ready: bool = True) -> Object:
    """Return one of its pods, with more labels, as the API server lists it."""
    own = template()["metadata"]
    return {
        "kind": "Pod",
        "metadata": {
            **own,
            "name": name,
            "uid": f"uid-of-{name}",
            "namespace": "training",
            "labels": {**own["labels"], **(labels or {})},
        },
        "spec": template()["spec"],
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def metrics_path(name: str) -> str:
    """Return the path of the API server behind which the metrics of a pod are."""
    port = template()["spec"]["containers"][0]["ports"][0]["containerPort"]
    return f"/api/v1/namespaces/training/pods/{name}:{port}/proxy/metrics"


def counted(text: str, name: str) -> float:
    """Return the value of a metric with one series."""
    return float(next(line for line in text.splitlines() if line.startswith(name)).split()[-1])
