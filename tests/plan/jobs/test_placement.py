"""A job's pods land on the nodes that it names, on all of those, and on no others."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.folders import ROOT
from tests.support.jobs import (
    BATCH,
    CPU_POOL,
    container,
    job_cluster,
    make_job,
    objects,
    pod_spec,
    prepared,
    refusals,
    sentences,
)
from tests.support.models.placement import nodes, plan_of, pools_wanted
from tests.support.pools import NEURON_POOL, ODCR, pool_document
from ultrascale import plan
from ultrascale.jobs import JobManifests

CLUSTERS = {
    name: ROOT / "clusters" / f"{name}.yaml"
    for name in ("trainium-bert", "mixed-capacity", "auto-mode", "hybrid-hyperpod")
}


def pools_in(file: Path) -> list[str]:
    return [pool.name for pool in plan.load(file).pools]


def terms_of(job: JobManifests) -> Any:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return pod_spec(job)["affinity"]["nodeAffinity"][required]["nodeSelectorTerms"]


@pytest.mark.parametrize(
    ("name", "pool"), [(name, pool) for name, file in CLUSTERS.items() for pool in pools_in(file)]
)
def test_a_job_runs_on_every_node_of_its_pool_and_on_no_other(name: str, pool: str) -> None:
    """A taint that it does not tolerate, or a label that is not there, and it waits for ever."""
    cluster = plan.load(CLUSTERS[name])
    job = prepared(CLUSTERS[name], make_job(pool=pool, nodes=1))

    spec = pod_spec(job)

    for node in nodes(cluster):
        assert node.takes(spec) == (node.pool == pool), node.labels


@pytest.mark.parametrize(
    "provisioner", ["managed-node-group", "self-managed", "karpenter", "auto-mode"]
)
def test_a_pool_may_be_named_by_its_label(provisioner: str) -> None:
    train = pool_document(provisioner=provisioner, labels={"example.com/team": "ml"})
    cluster = job_cluster(train, pool_document(name="other", provisioner=provisioner))
    for selector in ({"node-type": "train"}, {"example.com/team": "ml"}):
        job = prepared(cluster, make_job(pool=None, nodes=1, node_selector=selector))
        terms = terms_of(job)
        assert {rule["key"]: rule["values"] for rule in terms[0]["matchExpressions"]} == {
            "ultrascale.dev/pool": ["train"],
            **{key: [value] for key, value in selector.items()},
        }


def test_a_job_of_a_pool_in_shards_runs_on_all_of_them() -> None:
    pool = NEURON_POOL | {"provisioner": "karpenter", "purchase": ODCR, "role": "reserved"}
    cluster = job_cluster(pool | {"nodes": {"static": 2}, "shards": 4})
    assert objects(prepared(cluster, nodes=8), "Job")[0]["spec"]["minAvailable"] == 8
    assert refusals(cluster, nodes=9) == ["nodes: job_has_the_nodes"]
    # Nor does one that names no pool: a gang that can never be whole waits for ever.
    assert refusals(job=make_job(pool=None, nodes=17)) == ["nodes: nodes_are_there"]


def test_a_job_that_names_no_pool_gets_the_only_one_that_has_what_it_asks_for() -> None:
    cluster = job_cluster(NEURON_POOL, pool_document(name="gpu"))

    assert refusals(cluster, make_job(pool=None)) == ["pool: nodes_are_named"]
    job = prepared(cluster, make_job(pool=None, nodes=1, resources={"gpu": 8}))
    assert container(job)["resources"]["requests"]["nvidia.com/gpu"] == "8"


@pytest.mark.parametrize(
    ("selector", "pool"),
    [
        # A label that they have too, such as their zone's, does not choose them.
        ({"topology.kubernetes.io/zone": "us-west-2a"}, "cpu"),
        ({"node-type": "system"}, "system"),
        ({"ultrascale.dev/role": "system"}, "system"),
    ],
)
def test_controllers_nodes_are_left_to_them_unless_a_job_names_them(
    selector: dict[str, str], pool: str
) -> None:
    small = {"cpu": 1, "memory": "1Gi"}
    job = BATCH | {"pool": None}
    sent = prepared(job_cluster(CPU_POOL), job, node_selector=selector, resources=small)
    assert pools_wanted(sent) == [pool]


def test_a_label_that_no_node_of_the_pool_can_have_is_refused() -> None:
    assert refusals(node_selector={"topology.kubernetes.io/zone": "us-west-2a"}) == [
        "pool: nodes_are_named"
    ]


@pytest.mark.parametrize(
    ("key", "value", "todo"),
    [
        ("node.kubernetes.io/instance-type", "trn1.33xlarge", "did you mean trn1.32xlarge?"),
        ("ultrascale.dev/capacity", "spot", "known: on-demand"),
        ("topology.kubernetes.io/zone", "eu-north-1a", "known: us-west-2a, us-west-2b, us-west-2c"),
    ],
)
def test_a_label_that_no_node_of_the_cluster_has_is_named_with_those_that_there_are(
    key: str, value: str, todo: str
) -> None:
    assert sentences(node_selector={key: value}) == [
        f"job: node_selector.{key}: a label of no pool's nodes, got {value!r}; {todo}"
    ]


def test_a_label_of_the_users_own_is_asked_for_though_the_file_knows_nothing_of_it() -> None:
    job = prepared(node_selector={"example.com/rack": "7"})
    asked = {"key": "example.com/rack", "operator": "In", "values": ["7"]}
    assert asked in terms_of(job)[0]["matchExpressions"]
    assert job.notes == (
        "No pool of the cluster file gives its nodes the label example.com/rack: the job waits "
        "until somebody adds it to one that is there, and none is launched for it.",
    )
    # One that somebody else gives to all nodes is no surprise.
    others = {"topology.kubernetes.io/zone": "us-west-2b", "karpenter.k8s.aws/instance-cpu": "128"}
    assert prepared(node_selector=others).notes == ()


def test_taints_of_the_users_own_are_tolerated_beside_the_pools() -> None:
    own = {"key": "team", "operator": "Equal", "value": "ml", "effect": "NoSchedule"}

    assert pod_spec(prepared(tolerations=[own]))["tolerations"] == [
        {"key": "aws.amazon.com/neuron", "operator": "Exists", "effect": "NoSchedule"},
        own,
    ]


def test_a_key_tainted_with_two_effects_keeps_no_job_off_the_nodes_that_wait_for_it() -> None:
    """Kubernetes asks for a toleration of each: with one of them the pool stands idle, and paid."""
    effects = ("NoSchedule", "NoExecute")
    taints = [{"key": "team", "value": "ml", "effect": effect} for effect in effects]
    cluster = job_cluster(pool_document(taints=taints))

    borne = [{"key": "team", "operator": "Exists", "effect": effect} for effect in effects]
    # It tolerates neither by itself, or one of them.
    for own in ([], *([each] for each in borne)):
        spec = pod_spec(prepared(cluster, tolerations=own))
        assert {kind.pool for kind in nodes(plan_of(cluster)) if kind.takes(spec)} == {"train"}, own


@pytest.mark.parametrize("name", ["etcd-server", "etcd-client"])
def test_no_job_takes_the_name_of_the_rendezvous_server(name: str) -> None:
    """Volcano would take that Service for the job's own, and delete it with the job."""
    assert refusals(job=make_job(name=name)) == ["name: job_name_is_free"]
