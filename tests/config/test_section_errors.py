"""Mistakes in storage, scheduling, HyperPod and the sections after them."""

from typing import Any

import pytest

from tests.support.config_documents import GOVERNANCE, mistakes_in, with_lustre
from tests.support.pools import POOL, SYSTEM_POOL, governed_document, make_document, pool_document

BAD: dict[str, tuple[dict[str, Any], str]] = {
    # --- storage and images
    "file system that cannot be bought": (
        with_lustre({"capacity_gib": 9000}),
        "storage.lustre[scratch].capacity_gib: not a size at 250 MB/s per TiB, got 9000; "
        "nearest: 7200 or 9600",
    ),
    "EFA file system below its step": (
        with_lustre({"capacity_gib": 4800, "efa": True}),
        "storage.lustre[scratch].capacity_gib: not a size at 250 MB/s per TiB with EFA, got 4800; "
        "nearest: 19200",
    ),
    "no such tier": (
        with_lustre({"throughput_mbps_per_tib": 200}),
        "storage.lustre[scratch].throughput_mbps_per_tib: not a throughput tier of FSx for Lustre, "
        "got 200; use 125, 250, 500, 1000",
    ),
    "file system outside the network": (
        with_lustre({"zone": "us-west-2d"}),
        "storage.lustre[scratch].zone: not one of network.zones, got 'us-west-2d'; "
        "use one of us-west-2a, us-west-2b, us-west-2c, or add it there",
    ),
    "EFA file system for trn2": (
        with_lustre(
            {"capacity_gib": 19200, "efa": True},
            pools=[SYSTEM_POOL, pool_document(instance_types=["trn2.48xlarge"])],
        ),
        "storage.lustre[scratch].efa: trn2 nodes of pools[train] cannot reach it over EFA, got "
        "true; "
        "set efa: false, or put the pool into another zone",
    ),
    "EFA file system for Auto Mode": (
        with_lustre(
            {"capacity_gib": 19200, "efa": True},
            pools=[SYSTEM_POOL, pool_document(provisioner="auto-mode")],
        ),
        "storage.lustre[scratch].efa: EKS Auto Mode nodes of pools[train] cannot reach it over "
        "EFA, "
        "got true; set efa: false, or put the pool into another zone",
    ),
    "two file systems of one name": (
        with_lustre({}, {}),
        "storage.lustre[1].name: the name of storage.lustre[0] too, got 'scratch'; choose another",
    ),
    "two claims of one name": (
        with_lustre(
            {"claim": {"namespace": "training", "name": "data", "mount_path": "/data"}},
            {
                "name": "other",
                "claim": {"namespace": "training", "name": "data", "mount_path": "/other"},
            },
        ),
        "storage.lustre[other].claim.name: a second claim of that name in namespace training, "
        "got 'data'; choose another",
    ),
    "relative mount path": (
        with_lustre({"claim": {"namespace": "training", "name": "data", "mount_path": "data"}}),
        "storage.lustre[scratch].claim.mount_path: not an absolute path, got 'data'; "
        "write it as /data, with no '/' at the end and no '.' or '..' in it",
    ),
    **{
        f"claim in place of {path}": (
            with_lustre({"claim": {"namespace": "training", "name": "data", "mount_path": path}}),
            "storage.lustre[scratch].claim.mount_path: a path at which the container has "
            "something else: "
            f"{contents}, got '{path}'; choose another, such as /data",
        )
        for path, contents in {
            "/dev/shm": "devices, and the memory that processes share",
            "/proc": "the kernel's view of its processes",
            "/etc": "the settings of its image, hosts and name servers",
            "/usr/lib": "the programs of its image",
            "/": "the programs of its image",
        }.items()
    },
    "claim at a path that leads upwards": (
        with_lustre(
            {"claim": {"namespace": "training", "name": "data", "mount_path": "/data/../etc"}}
        ),
        "storage.lustre[scratch].claim.mount_path: not an absolute path, got '/data/../etc'; "
        "write it as /data, with no '/' at the end and no '.' or '..' in it",
    ),
    "file system beyond FSx's count": (
        with_lustre({"capacity_gib": 2400 * 2**20}),
        f"storage.lustre[scratch].capacity_gib: out of range, got {2400 * 2**20}; "
        f"write at most {2**31 - 1}",
    ),
    "bucket that is not there": (
        with_lustre({"s3": {"bucket": "dataset"}}),
        "storage.lustre[scratch].s3.bucket: not one of storage.buckets, got 'dataset'; "
        "did you mean datasets?",
    ),
    "misspelt event": (
        with_lustre({"s3": {"bucket": "datasets", "import": ["new", "chnged"]}}),
        "storage.lustre[scratch].s3.import[1]: unknown value, got 'chnged'; did you mean changed?",
    ),
    "bucket twice": (
        make_document(storage={"buckets": ["data", "data"]}),
        "storage.buckets[1]: stands in the list twice, got 'data'; keep one",
    ),
    "repository twice": (
        make_document(images={"repositories": ["bert", "bert"]}),
        "images.repositories[1]: stands in the list twice, got 'bert'; keep one",
    ),
    "registry as a URL": (
        make_document(images={"eks_registry": "https://602401143452.dkr.ecr"}),
        "images.eks_registry: not the host of a registry, got 'https://602401143452.dkr.ecr'; "
        "write it without https:// and path, such as ACCOUNT.dkr.ecr.REGION.amazonaws.com",
    ),
    # --- scheduling
    "misspelt scheduler": (
        make_document(scheduling={"queueing": "volcno"}),
        "scheduling.queueing: unknown value, got 'volcno'; did you mean volcano?",
    ),
    "queues without an engine": (
        make_document(scheduling={"queues": [{"name": "a"}]}),
        "scheduling.queues: queues without an engine, got [{name: a}]; "
        "set queueing: kueue, or volcano",
    ),
    "topology without Volcano": (
        make_document(scheduling={"topology_aware": True}),
        "scheduling.topology_aware: needs Volcano, got true; set queueing: volcano",
    ),
    "two engines by two names": (
        make_document(scheduling={"queueing": "kueue", "gang_scheduler": "volcano"}),
        "scheduling.gang_scheduler: the older name of queueing, which says kueue, got 'volcano'; "
        "keep queueing alone",
    ),
    "queue of no weight": (
        make_document(scheduling={"queueing": "volcano", "queues": [{"name": "a", "weight": 0}]}),
        "scheduling.queues[a].weight: out of range, got 0; write 1 to 65535",
    ),
    "Volcano's own queue": (
        make_document(scheduling={"queueing": "volcano", "queues": [{"name": "default"}]}),
        "scheduling.queues[default].name: a queue that Volcano makes itself, got 'default'; "
        "choose another",
    ),
    "two queues of one name": (
        make_document(scheduling={"queueing": "volcano", "queues": [{"name": "a"}, {"name": "a"}]}),
        "scheduling.queues[1].name: the name of scheduling.queues[0] too, got 'a'; choose another",
    ),
    "priority of Kubernetes' own": (
        make_document(scheduling={"priority_classes": {"top": 1_000_000_001}}),
        "scheduling.priority_classes.top: not a priority that users may set, got 1000000001; "
        "write -2147483648 to 1000000000",
    ),
    "priority named as Kubernetes' own": (
        make_document(scheduling={"priority_classes": {"system-top": 1}}),
        "scheduling.priority_classes.system-top: 'system-top': names that start with system- "
        "are Kubernetes' own; choose another",
    ),
    "two members of etcd": (
        make_document(scheduling={"rendezvous": {"backend": "etcd", "replicas": 2}}),
        "scheduling.rendezvous.replicas: not a size of an etcd cluster, got 2; write 1 or 3",
    ),
    "replicas of nothing": (
        make_document(scheduling={"rendezvous": {"replicas": 3}}),
        "scheduling.rendezvous.replicas: static runs in the job and has no replicas, got 3; "
        "leave it out, or use backend: etcd",
    ),
    "Neuron extension without Neuron": (
        make_document(pools=[SYSTEM_POOL, POOL], scheduling={"neuron_scheduler_extension": True}),
        "scheduling.neuron_scheduler_extension: no pool has Neuron devices, got true; leave it out",
    ),
    # --- HyperPod
    "two governors": (
        governed_document(scheduling={"queueing": "volcano"}),
        "scheduling.queueing: HyperPod task governance, which is a Kueue of its own, queues this "
        "cluster's jobs, got 'volcano'; use none, or remove hyperpod.task_governance",
    ),
    "HyperPod settings without HyperPod": (
        make_document(hyperpod=GOVERNANCE),
        "hyperpod: no pool has provisioner: hyperpod; add one, or remove hyperpod",
    ),
    # --- the rest
    "backend's job that is not there": (
        make_document(backend={"submits_to": ["tune"]}),
        "backend.submits_to[0]: not one of jobs, got 'tune'; there is none",
    ),
    "HyperPod's add-on without HyperPod": (
        make_document(observability={"hyperpod_addon": True}),
        "observability.hyperpod_addon: no pool has provisioner hyperpod, got true; "
        "leave it out, or add such a pool",
    ),
    "alarm to nobody": (
        make_document(observability={"alarms": {"email": "ana"}}),
        "observability.alarms.email: not an e-mail address, got 'ana'; "
        "write it as name@example.com",
    ),
    "objective of everything": (
        make_document(
            observability={"write_latency_slo": {"threshold_ms": 15, "goal_percent": 100}}
        ),
        "observability.write_latency_slo.goal_percent: out of range, got 100; write less than 100",
    ),
    "objective that is none": (
        make_document(
            observability={"write_latency_slo": {"threshold_ms": 15, "goal_percent": 0.9}}
        ),
        "observability.write_latency_slo.goal_percent: out of range, got 0.9; write at least 1",
    ),
    "objective within no time": (
        make_document(observability={"write_latency_slo": {"threshold_ms": 0, "goal_percent": 90}}),
        "observability.write_latency_slo.threshold_ms: out of range, got 0; write at least 1",
    ),
    "objective within a minute": (
        make_document(
            observability={"write_latency_slo": {"threshold_ms": 60_000, "goal_percent": 90}}
        ),
        "observability.write_latency_slo.threshold_ms: out of range, got 60000; "
        "write at most 10000",
    ),
    "agreement on no limit": (
        make_document(agreed_limits={"reference": "case 1"}),
        "agreed_limits: a reference, and no limit that it grants, got {reference: case 1}; "
        "write nau_per_vpc, pods or database_gb beside it",
    ),
    "limit without its case": (
        make_document(agreed_limits={"nau_per_vpc": 2_000_000}),
        "agreed_limits.reference: missing; add it",
    ),
    "section that is a word": (
        make_document(storage="none"),
        "storage: not a mapping, got 'none'; write it as key: value",
    ),
}


@pytest.mark.parametrize(("document", "line"), BAD.values(), ids=list(BAD))
def test_a_mistake_is_named_with_its_key_its_value_and_a_way_out(
    document: dict[str, Any], line: str
) -> None:
    assert line in mistakes_in(document)
