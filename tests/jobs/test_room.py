"""A job that fits nowhere now: `submit` says what it waits for."""

import copy
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.folders import ROOT
from tests.support.stub_api_server import Refusal, StubApiServer
from ultrascale.cluster_api.server import Cluster
from ultrascale.documents import mapping, objects
from ultrascale.jobs import JobManifests, prepare
from ultrascale.jobs.preparation import JobCluster, read_cluster
from ultrascale.jobs.prerequisites import warns_of_disks
from ultrascale.jobs.room import MOST_NODES, waits_for_room

NODES, TRAINING = "/api/v1/nodes", "/api/v1/namespaces/training/pods"
# A trn1.32xlarge, less what EKS sets aside.
ALLOCATABLE = {
    "cpu": "127610m",
    "memory": "500Gi",
    "aws.amazon.com/neuron": "16",
    "vpc.amazonaws.com/efa": "8",
    "hugepages-2Mi": "11264Mi",
}


@pytest.fixture(scope="module")
def tutorial() -> JobCluster:
    return read_cluster(ROOT / "clusters" / "trainium-bert.yaml")


def job(tutorial: JobCluster, name: str, **options: Any) -> JobManifests:
    return prepare(tutorial, ROOT / "jobs" / f"{name}.yaml", account="111122223333", **options)


def add_nodes(stub: StubApiServer, count: int = 2) -> None:
    labels = {"ultrascale.dev/pool": "trn1", "node-type": "trn1"}
    ready = {"type": "Ready", "status": "True"}
    node = {
        "metadata": {"labels": labels},
        "spec": {"taints": [{"key": "aws.amazon.com/neuron", "effect": "NoSchedule"}]},
        "status": {"allocatable": ALLOCATABLE, "conditions": [ready]},
    }
    for index in range(count):
        stub.put(f"{NODES}/n{index}", copy.deepcopy(node))


def run(stub: StubApiServer, running: JobManifests) -> None:
    """Put a pod of a job on each of the first nodes."""
    (task, *_) = objects(running.objects[-1], "spec", "tasks")
    containers = mapping(task, "template", "spec")["containers"]
    for index in range(running.pods):
        pod = {
            "metadata": {"labels": {"ultrascale.dev/job": running.name}},
            "spec": {"nodeName": f"n{index}", "containers": containers},
            "status": {"phase": "Running"},
        }
        stub.put(f"{TRAINING}/{running.name}-{index}", pod)


def test_a_job_that_waits_for_another_one_is_told_which(
    tutorial: JobCluster, stub: StubApiServer, cluster: Cluster
) -> None:
    add_nodes(stub)
    data, pretrain = job(tutorial, "bert-data"), job(tutorial, "bert-pretrain")
    # Data first: a node has room for it, until the training takes both as a whole.
    assert [*waits_for_room(cluster, data)] == [*waits_for_room(cluster, pretrain)] == []
    run(stub, pretrain)
    assert [*waits_for_room(cluster, data)] == [
        "0 of its 1 pods fit on the 2 nodes that it may run on: it waits for job bert-pretrain, or "
        "for nodes that are launched for it"
    ]
    # In a queue of Kueue it waits for nobody where that has a guarantee, or a lower priority runs.
    (told,) = waits_for_room(cluster, replace(data, local_queue="research"))
    assert told.endswith("launched for it, unless its queue has them give way")
    # Pods that have ended hold nothing.
    for index in range(pretrain.pods):
        stub.update(f"{TRAINING}/{pretrain.name}-{index}", status={"phase": "Succeeded"})
    assert [*waits_for_room(cluster, data)] == []


def test_a_gang_that_half_fits_waits(
    tutorial: JobCluster, stub: StubApiServer, cluster: Cluster
) -> None:
    add_nodes(stub)
    run(stub, job(tutorial, "bert-data"))

    (told,) = waits_for_room(cluster, job(tutorial, "bert-pretrain"))

    assert told.startswith("1 of its 2 pods fit on the 2 nodes")
    assert "job bert-data" in told


def test_what_each_node_has_holds_no_job_up_and_a_jobs_own_pods_hold_it_least(
    tutorial: JobCluster, stub: StubApiServer, cluster: Cluster
) -> None:
    add_nodes(stub)
    pretrain = job(tutorial, "bert-pretrain")
    run(stub, pretrain)
    container = {"name": "c", "resources": {"requests": {"cpu": "100m"}}}
    daemon = {
        "metadata": {"ownerReferences": [{"kind": "DaemonSet", "name": "plugin", "uid": "u"}]},
        "spec": {"nodeName": "n0", "containers": [container]},
    }
    stub.put("/api/v1/namespaces/kube-system/pods/plugin", daemon)
    assert [*waits_for_room(cluster, pretrain)] == []
    # Who may not read nodes can still submit.
    stub.refuse("GET", f"{NODES}$", Refusal(403))
    assert [*waits_for_room(cluster, job(tutorial, "bert-data"))] == []


@pytest.mark.parametrize("count", [0, MOST_NODES + 1])
def test_nothing_is_said_of_no_nodes_and_of_very_many(
    tutorial: JobCluster, stub: StubApiServer, cluster: Cluster, count: int
) -> None:
    add_nodes(stub, count)

    assert [*waits_for_room(cluster, job(tutorial, "bert-data"))] == []
    assert len(stub.requests) == 1


def test_roles_do_not_count_the_same_node_twice(
    stub: StubApiServer, cluster: Cluster, tutorial: JobCluster
) -> None:
    """Each of two roles fits by itself; the other one waits for the job that has the rest."""
    add_nodes(stub, 3)
    run(stub, job(tutorial, "bert-data"))
    program: dict[str, Any] = {"pool": "trn1", "image": "docker.io/example/rl:1", "command": ["a"]}
    two: dict[str, Any] = {"name": "rl", "roles": {"a": {"nodes": 2, **program}, "b": program}}
    one: dict[str, Any] = {"name": "rl", "roles": {"a": {"nodes": 2, **program}}}

    assert [*waits_for_room(cluster, prepare(tutorial, one))] == []
    (told,) = waits_for_room(cluster, prepare(tutorial, two))
    assert told.startswith("2 of its 3 pods fit on the 3 nodes")
    assert "job bert-data" in told


@pytest.mark.parametrize(
    ("disk", "warned"), [("104779756Ki", True), ("7430000000Ki", False), (None, False)]
)
def test_scratch_on_nodes_whose_pods_lie_on_the_root_volume_is_told_before_it_fills(
    stub: StubApiServer, cluster: Cluster, tutorial: JobCluster, disk: str | None, warned: bool
) -> None:
    add_nodes(stub)
    for index in range(2):
        capacity = {} if disk is None else {"ephemeral-storage": disk}
        stub.objects[f"{NODES}/n{index}"]["status"]["capacity"] = capacity
    plain, own = (
        [*warns_of_disks(cluster, job(tutorial, "bert-pretrain", changes=changes))]
        for changes in ({}, {"scratch": "/scratch"})
    )
    told = "2 of the 2 nodes that it may run on keep volumes of pods on a disk of 107 GB,"
    assert [line[:77] for line in own] == [told] * warned
    assert plain == []
