"""Jobs and the clusters that they run in, for tests to bend, and what becomes of them."""

import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.support.folders import ROOT
from tests.support.pools import SYSTEM_POOL, as_json, as_text, make_document, pool_document
from tests.support.verdicts import verdicts
from ultrascale.errors import ConfigError, Diagnostic
from ultrascale.jobs import JobManifests, prepare
from ultrascale.jobs.preparation import JobCluster, read_cluster

VOLCANO: dict[str, Any] = {"queueing": "volcano"}
KUEUE: dict[str, Any] = {"queueing": "kueue", "queues": [{"name": "research"}]}
IMAGE = "docker.io/example/train:1"
HYBRID = ROOT / "clusters" / "hybrid-hyperpod.yaml"
JOB: dict[str, Any] = {
    "name": "tune",
    "pool": "train",
    "nodes": 2,
    "image": IMAGE,
    "script": "train.py",
    "durable": False,
}
BATCH: dict[str, Any] = {
    "name": "convert",
    "kind": "batch",
    "pool": "train",
    "image": IMAGE,
    "command": ["python3", "convert.py"],
}
SERVICE: dict[str, Any] = {
    "name": "chat",
    "kind": "service",
    "pool": "train",
    "image": IMAGE,
    "command": ["python3", "serve.py"],
}
DEV: dict[str, Any] = {"name": "notebook", "kind": "dev", "pool": "train", "image": IMAGE}
KARPENTER = {"version": "1.15.2"}
CPU_POOL = pool_document(name="cpu", instance_types=["m7i.8xlarge"], zones=None)


def operated_file(folder: Path) -> Path:
    """Write the hybrid cluster file with HyperPod's training operator."""
    document: dict[str, Any] = yaml.load(HYBRID.read_text(), yaml.CSafeLoader)
    document["hyperpod"]["training_operator"] = True
    file = folder / "operated.yaml"
    file.write_text(as_text(document))
    return file


def make_job(**changes: Any) -> dict[str, Any]:
    """Return a valid job in which ``changes`` replace keys; None removes one."""
    return {key: value for key, value in (JOB | changes).items() if value is not None}


def job_cluster(*pools: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a cluster file with Volcano, of ``pools`` beside the one for controllers."""
    document = make_document(scheduling=VOLCANO)
    if pools:
        document["pools"] = [document["pools"][0], *pools]
    if any(pool["provisioner"] == "karpenter" for pool in pools):
        document["karpenter"] = KARPENTER
    return {key: value for key, value in (document | changes).items() if value is not None}


def having(cluster: Mapping[str, Any], job: Mapping[str, Any]) -> dict[str, Any]:
    """Return a cluster file with a job as a template of its own name."""
    template = {key: value for key, value in job.items() if key != "name"}
    return {**cluster, "jobs": {**cluster.get("jobs", {}), job["name"]: template}}


def large_cluster(**changes: Any) -> dict[str, Any]:
    """Return a cluster file whose pool `train` has 20,000 nodes, in five shards."""
    system = SYSTEM_POOL | {"instance_types": ["m8g.24xlarge"], "nodes": {"min": 9, "max": 30}}
    train = {
        "name": "train",
        "role": "reserved",
        "instance_types": ["trn2.48xlarge"],
        "provisioner": "karpenter",
        "purchase": {"option": "odcr", "reservation_tags": {"fleet": "trn2"}},
        "zones": ["us-west-2b"],
        "nodes": {"static": 4000},
        "shards": 5,
    }
    network = {
        "vpc_cidr": "10.0.0.0/16",
        "pod_cidrs": {"count": 31, "from": "100.64.0.0/10"},
        "zones": ["us-west-2a", "us-west-2b"],
    }
    return (
        job_cluster(**{"pools": [system, train], "network": network, "karpenter": KARPENTER})
        | changes
    )


def prepared(
    cluster: Mapping[str, Any] | Path | None = None,
    job: Mapping[str, Any] | Path | str | None = None,
    *,
    precompile: bool = False,
    account: str | None = "111122223333",
    **changes: Any,
) -> JobManifests:
    """Return what is sent for ``job``, with ``changes``, in a cluster of that file.

    Most tests need no place for its output: a training job says so unless it speaks of it.
    """
    if job is None or isinstance(job, Mapping):
        job = {key: value for key, value in (job or JOB).items() if value is not None}
        if job.get("kind", "training") == "training":
            job = {"durable": False} | job
    if isinstance(cluster, Path):
        into = _read(cluster, cluster.read_text())
    else:
        into = _cluster(as_json(job_cluster() if cluster is None else dict(cluster)))
    return prepare(into, job, changes=changes, precompile=precompile, account=account)


@cache
def _read(file: Path, _: str) -> JobCluster:
    """Clusters are frozen: jobs of many tests may share one. A file may change, and so its text."""
    return read_cluster(file)


@cache
def _cluster(text: str) -> JobCluster:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "cluster.yaml")
        file.write_text(text)
        return read_cluster(file)


def refusals(
    cluster: Mapping[str, Any] | Path | None = None,
    job: Mapping[str, Any] | Path | str | None = None,
    **changes: Any,
) -> list[str]:
    """Return the key and the rule of each mistake in ``job``, or in the cluster file."""
    return verdicts(_refused(cluster, job, changes))


def sentences(
    cluster: Mapping[str, Any] | Path | None = None,
    job: Mapping[str, Any] | Path | str | None = None,
    **changes: Any,
) -> list[str]:
    """Return the sentence of each mistake in ``job``, for tests of what words say."""
    refused = _refused(cluster, job, changes)
    return [each.keyed if each.file != "job" else str(each) for each in refused]


def _refused(
    cluster: Mapping[str, Any] | Path | None,
    job: Mapping[str, Any] | Path | str | None,
    changes: Mapping[str, Any],
) -> tuple[Diagnostic, ...]:
    try:
        prepared(cluster, job, **changes)
    except ConfigError as error:
        return error.diagnostics
    return ()


def objects(manifests: JobManifests, kind: str) -> list[Any]:
    """Return the objects of ``kind``."""
    return [dict(each) for each in manifests.objects if each["kind"] == kind]


def pod_spec(manifests: JobManifests) -> Any:
    """Return the spec of the pods of a job; the first of them where there are several."""
    workload: Any = manifests.objects[-1]
    spec = workload["spec"]
    if "pytorchReplicaSpecs" in spec:
        spec = spec["pytorchReplicaSpecs"]["Worker"]
    if "replicatedJobs" in spec:
        spec = spec["replicatedJobs"][0]["template"]["spec"]
    template = spec["template"] if "template" in spec else spec["tasks"][0]["template"]
    return template["spec"]


def container(manifests: JobManifests) -> Any:
    """Return the container of the pods of a job."""
    (found,) = pod_spec(manifests)["containers"]
    return found


def environment(manifests: JobManifests) -> dict[str, Any]:
    """Return the variables of a job's container; a field's path where one has no value."""
    return {
        each["name"]: each["value"]
        if "value" in each
        else each["valueFrom"]["fieldRef"]["fieldPath"]
        for each in container(manifests)["env"]
    }
