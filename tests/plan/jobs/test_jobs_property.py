"""Properties of jobs: any job on any pool is refused with a way out, or it runs."""

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.support.job_rules import findings, pod_templates
from tests.support.jobs import BATCH, JOB, KUEUE, SERVICE, VOLCANO, job_cluster, prepared, sentences
from tests.support.models.placement import nodes, plan_of
from tests.support.pools import CAPACITY_BLOCK, HYPERPOD_POOL, ODCR, SPOT, pool_document

GPUS = {"instance_types": ["g6.12xlarge", "g6e.12xlarge", "g5.12xlarge"], "zones": None}
TRN = {"instance_types": ["trn1.32xlarge"]}
CPU = {"instance_types": ["m7i.8xlarge"], "zones": None}
FALLBACK = {"purchase": SPOT | {"fallback": "on-demand"}}
KEPT: dict[str, Any] = {"role": "reserved", "purchase": ODCR}
STATIC: dict[str, Any] = {**KEPT, "nodes": {"static": 4}}
BLOCK: dict[str, Any] = {"role": "reserved", "purchase": CAPACITY_BLOCK, "nodes": {"static": 4}}
HYPERPOD: dict[str, Any] = HYPERPOD_POOL | {"name": "train"}
POOLS: dict[str, dict[str, Any]] = {
    "trn1 group": pool_document(**TRN),
    "trn1 group of two nodes at least": pool_document(**TRN, nodes={"min": 2, "max": 8}),
    "trn1 of Karpenter": pool_document(**TRN, provisioner="karpenter"),
    "trn1 in shards": pool_document(**TRN, **STATIC, provisioner="karpenter", shards=2),
    "trn1 of Auto Mode": pool_document(**TRN, provisioner="auto-mode"),
    "trn1 without EFA": pool_document(**TRN, efa="none"),
    "p5 block": pool_document(**BLOCK),
    "p5 block of Karpenter": pool_document(**BLOCK, provisioner="karpenter"),
    "p5 self-managed": pool_document(provisioner="self-managed"),
    "p5 reserved on Auto Mode": pool_document(**STATIC, provisioner="auto-mode"),
    "spot GPUs": pool_document(**GPUS, purchase=SPOT),
    "spot GPUs of Karpenter": pool_document(**GPUS, **FALLBACK, provisioner="karpenter"),
    "spot GPUs of Auto Mode": pool_document(**GPUS, **FALLBACK, provisioner="auto-mode"),
    "HyperPod": HYPERPOD,
    "HyperPod with deep checks": HYPERPOD | {"deep_health_checks": True},
    "CPU": pool_document(**CPU),
    "CPU of Karpenter": pool_document(**CPU, **FALLBACK, provisioner="karpenter"),
    "small GPUs": pool_document(instance_types=["g5g.xlarge"], zones=None),
}
Drawn = st.SearchStrategy[Any]

RESOURCES: Drawn = st.one_of(
    st.just({}),
    st.sampled_from([{"gpu": 1}, {"gpu": 4}, {"neuron": 1}, {"cpu": 4, "memory": "16Gi"}]),
    st.fixed_dictionaries(
        {},
        optional={
            "gpu": st.sampled_from([0, 1, 4, 8]),
            "neuron": st.sampled_from([0, 1, 4, 16]),
            "efa": st.sampled_from([0, 1, 8, 32]),
            "cpu": st.sampled_from(["500m", 4, 500]),
            "memory": st.sampled_from(["1Gi", "100Gi", "4Ti"]),
            "shared_memory": st.sampled_from(["64Mi", "100Gi"]),
        },
    ),
)
ANY: dict[str, Drawn] = {"resources": RESOURCES, "grace_period_seconds": st.sampled_from([1, 110])}


def given_of(job: dict[str, Any]) -> dict[str, Drawn]:
    return {key: st.just(value) for key, value in job.items()}


JOBS: Drawn = st.one_of(
    st.fixed_dictionaries(
        {**given_of(JOB), "nodes": st.sampled_from([1, 1, 2, 4, 9]), **ANY},
        optional={
            "min_nodes": st.sampled_from([1, 2]),
            "processes_per_node": st.sampled_from([1, 4, 32]),
            "rendezvous": st.sampled_from(["c10d", "etcd"]),
            "role": st.sampled_from(["worker", "w" * 13]),
        },
    ),
    st.fixed_dictionaries(
        {
            **{key: value for key, value in given_of(JOB).items() if key != "nodes"},
            "roles": st.dictionaries(
                st.sampled_from(["trainer", "w" * 13, "b"]),
                st.fixed_dictionaries(
                    {},
                    optional={
                        "nodes": st.sampled_from([1, 2, 9]),
                        "resources": RESOURCES,
                        "command": st.just(["run"]),
                        "when_lost": st.just("restart-role"),
                    },
                ),
                min_size=1,
            ),
            **ANY,
        },
        optional={"rendezvous": st.sampled_from(["c10d", "etcd"])},
    ),
    st.fixed_dictionaries({**given_of(BATCH), **ANY}),
    st.fixed_dictionaries(
        {**given_of(SERVICE), "replicas": st.sampled_from([1, 3, 40]), **ANY},
        optional={"capacity": st.sampled_from(["reserved", "spot", "on-demand"])},
    ),
)
ETCD = {"rendezvous": {"backend": "etcd", "replicas": 3}}
ENGINES: dict[str, dict[str, Any] | None] = {
    "none": None,
    "volcano": VOLCANO | ETCD,
    "kueue": KUEUE | ETCD | {"queues": [{"name": "research", "prefer": ["train"]}]},
}


@settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(name=st.sampled_from(list(POOLS)), job=JOBS, engine=st.sampled_from(list(ENGINES)))
def test_whatever_is_asked_for_is_refused_with_a_way_out_or_runs(
    name: str, job: dict[str, Any], engine: str
) -> None:
    cluster = job_cluster(POOLS[name], scheduling=ENGINES[engine])
    lines = sentences(cluster, job)
    if lines:
        assert all(line.startswith("job: ") and "; " in line for line in lines), lines
        return

    sent = prepared(cluster, job)

    assert findings(sent, "1.35") == []
    for template in pod_templates(sent):
        spec = template["spec"]
        takes = {node.pool for node in nodes(plan_of(cluster)) if node.takes(spec)}
        assert takes == {"train"}
        requests = spec["containers"][0]["resources"]["requests"]
        assert {"cpu", "memory"} <= requests.keys()
        assert int(requests.get("aws.amazon.com/neuron", 16)) in (1, 16)


@pytest.mark.parametrize("name", [name for name in POOLS if name != "small GPUs"])
def test_a_job_that_asks_for_nothing_in_particular_runs_on_every_pool(name: str) -> None:
    cluster = job_cluster(POOLS[name])

    assert findings(prepared(cluster, nodes=1), "1.35") == []
