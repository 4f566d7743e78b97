"""Mistakes in jobs, each with its key, its value and a way out."""

from typing import Any

import pytest

from tests.support.config_documents import mistakes_in, with_job
from tests.support.config_jobs import G6, LUSTRE, VOLCANO, gpus, job, own, trn
from tests.support.pools import (
    ODCR,
    POOL,
    SPOT,
    SYSTEM_POOL,
    make_document,
    pool_document,
)

TAKEN = "a path at which the container has something else: "

BAD: dict[str, tuple[dict[str, Any], str]] = {
    # --- which program
    "no such recipe": (
        job(pool="train", recipe="llama3-8"),
        "jobs.tune.recipe: not one of `ultrascale recipes`, got 'llama3-8'; did you mean "
        "llama3-8b?",
    ),
    "recipe beside a script": (
        job(pool="train", recipe="llama3-8b", script="train.py"),
        "jobs.tune.script: a program beside that of the recipe, got 'train.py'; keep recipe or "
        "script",
    ),
    "recipe beside a command": (
        job(pool="train", recipe="llama3-8b", command=["python3"]),
        "jobs.tune.command: a program beside that of the recipe, got [python3]; keep recipe or "
        "command",
    ),
    "recipe of several roles": (
        job(pool="train", recipe="llama3-8b", roles={"a": {}, "b": {}}) | {"scheduling": VOLCANO},
        "jobs.tune.recipe: a recipe for a job of several roles, each of which has a program of "
        "its own, got 'llama3-8b'; leave out recipe or roles",
    ),
    "recipe with a cache of graphs": (
        job(pool="train", recipe="llama3-8b", compile_cache={"model": "llama"}),
        "jobs.tune.compile_cache: compiled graphs of a recipe, which TorchTitan does not keep "
        "there; leave it out",
    ),
    # --- which nodes
    "no such pool": (
        job(pool="trian"),
        "jobs.tune.pool: not one of pools, got 'trian'; did you mean train?",
    ),
    "pool beside preference": (
        job(pool="train", prefer=["train"]),
        "jobs.tune.prefer: a pool and an order of preference, got [train]; keep pool or prefer",
    ),
    "pool named twice": (
        job(pool="train", node_selector={"node-type": "train"}),
        "jobs.tune.node_selector.node-type: a second way to name the pool, got 'train'; "
        "keep pool or node-type",
    ),
    "selector beside preference": (
        with_job(node_selector={"node-type": "train"}, prefer=["train"]),
        "jobs.tune.prefer: a strict selector and an order of preference, got [train]; "
        "keep node_selector or prefer",
    ),
    "preference for no pool": (
        with_job(prefer=["train", "trian"]),
        "jobs.tune.prefer[1]: the node-type of no pool, got 'trian'; did you mean train?",
    ),
    "selector of no pool": (
        with_job(node_selector={"node-type": "trian"}),
        "jobs.tune.node_selector.node-type: the node-type of no pool, got 'trian'; "
        "did you mean train?",
    ),
    "more GPUs than a node has": (
        with_job(prefer=["train"], resources={"gpu": 16}) | {"pools": [SYSTEM_POOL, POOL]},
        "jobs.tune.resources.gpu: more than a node of train has: 8, got 16; "
        "ask for less, or choose another pool",
    ),
    "GPUs of a node without any": (
        with_job(kind="batch", node_selector={"node-type": "system"}, resources={"gpu": 1}),
        "jobs.tune.resources.gpu: more than a node of system has: 0, got 1; "
        "ask for less, or choose another pool",
    ),
    "priority that is not there": (
        with_job(priority="critcal"),
        "jobs.tune.priority: not one of scheduling.priority_classes, got 'critcal'; "
        "did you mean critical?",
    ),
    "team that is not there": (
        with_job(team="research"),
        "jobs.tune.team: not one of hyperpod.task_governance.teams, got 'research'; there is none",
    ),
    "two kinds of accelerator in a pod": (
        with_job(resources={"gpu": 1, "neuron": 1}),
        "jobs.tune.resources.neuron: GPUs and Neuron devices in one pod, got 1; keep gpu or neuron",
    ),
    "memory in gigabytes of no kind": (
        with_job(resources={"memory": "64GB"}),
        "jobs.tune.resources.memory: not a Kubernetes quantity, got '64GB'; "
        "write a number and a unit, such as 64Gi",
    ),
    "toleration of any value and one": (
        with_job(tolerations=[{"key": "spot", "operator": "Exists", "value": "true"}]),
        "jobs.tune.tolerations[0].value: a value, although any value is tolerated, got 'true'; "
        "leave it out, or use operator: Equal",
    ),
    "GPUs that leave a rest for nobody": (
        gpus(resources={"gpu": 3}),
        "jobs.tune.resources.gpu: no even share of the 8 of a node: the rest would fit nobody, "
        "got 3; ask for 1, 2, 4, 8",
    ),
    "Neuron devices that may not be neighbours": (
        trn(resources={"neuron": 4}),
        "jobs.tune.resources.neuron: a part of the 16 devices of a node, which may not be "
        "neighbours, got 4; ask for 1 or 16",
    ),
    "more nodes than the pool has": (
        trn(nodes=17),
        "jobs.tune.nodes: more than the 16 nodes of train, got 17; "
        "ask for at most 16, or raise nodes in pool train",
    ),
    "more nodes than the shards have": (
        job(
            pool_document(
                provisioner="karpenter",
                purchase=ODCR,
                role="reserved",
                nodes={"static": 4},
                shards=2,
            ),
            pool="train",
            nodes=9,
        )
        | {"karpenter": {"version": "1.15.2"}},
        "jobs.tune.nodes: more than the 8 nodes of train, got 9; "
        "ask for at most 8, or raise nodes in pool train",
    ),
    "fewest nodes above the most": (
        trn(nodes=2, min_nodes=3),
        "jobs.tune.min_nodes: more than nodes, which is 2, got 3; write less",
    ),
    "a misspelt word of a key that takes a mapping as well": (
        trn(topology="requird"),
        "jobs.tune.topology: unknown value, got 'requird'; did you mean required?",
    ),
    "a list for a key that takes a word or a mapping": (
        trn(topology=["required"]),
        "jobs.tune.topology: unknown value, got [required]; write any, preferred or required",
    ),
    "a misspelt key of a mapping where a word could stand": (
        trn(topology={"requird": "layer-2"}),
        "jobs.tune.topology.requird: unknown key 'requird'; did you mean required?",
    ),
    "a misspelt value of a mapping where a word could stand": (
        trn(topology={"required": "layer-9"}),
        "jobs.tune.topology.required: unknown value, got 'layer-9'; did you mean layer-4?",
    ),
    "no nodes": (trn(nodes=0), "jobs.tune.nodes: out of range, got 0; write at least 1"),
    "training beside controllers": (
        job(pool="system"),
        "jobs.tune.pool: the nodes of controllers and add-ons, got 'system'; "
        "choose a pool of another role",
    ),
    "training beside controllers by their label": (
        job(node_selector={"node-type": "system"}),
        "jobs.tune.node_selector: the nodes of controllers and add-ons, got {node-type: system}; "
        "choose a pool of another role",
    ),
    # --- processes
    "processes that share no devices evenly": (
        gpus(processes_per_node=3),
        "jobs.tune.processes_per_node: not an even share of the 8 GPUs or NeuronCores of a pod, "
        "got 3; write 1, 2, 4, 8",
    ),
    "more processes than NeuronCores": (
        trn(processes_per_node=64),
        "jobs.tune.processes_per_node: not an even share of the 32 GPUs or NeuronCores of a pod, "
        "got 64; write 1, 2, 4, 8, 16, 32",
    ),
    "more processes than the GPUs that are asked for": (
        gpus(processes_per_node=4, resources={"gpu": 2}),
        "jobs.tune.processes_per_node: not an even share of the 2 GPUs or NeuronCores of a pod, "
        "got 4; write 1, 2",
    ),
    # --- queue, rendezvous
    "queue without an engine": (
        trn(queue="research"),
        "jobs.tune.queue: no engine has queues here, got 'research'; "
        "leave it out, or set scheduling.queueing: kueue, or volcano",
    ),
    "queue that is not there": (
        trn(queue="reserch") | {"scheduling": VOLCANO | {"queues": [{"name": "research"}]}},
        "jobs.tune.queue: not one of scheduling.queues, got 'reserch'; did you mean research?",
    ),
    "queue that takes no jobs": (
        trn(queue="root") | {"scheduling": VOLCANO},
        "jobs.tune.queue: not one of scheduling.queues, got 'root'; known: default",
    ),
    "rendezvous without its server": (
        trn(rendezvous="etcd-v2"),
        "jobs.tune.rendezvous: no server of that kind runs in the cluster, got 'etcd-v2'; "
        "use static or c10d, or set scheduling.rendezvous.backend: etcd-v2",
    ),
    "ranks that are fixed beside nodes that change": (
        trn(nodes=2, min_nodes=1, rendezvous="static"),
        "jobs.tune.rendezvous: ranks that are fixed, beside min_nodes, with which they change, "
        "got 'static'; leave it out, or write etcd",
    ),
    "processes that restart where nobody learns of it": (
        trn(nodes=2, rendezvous="static", restarts={"workers": 2}),
        "jobs.tune.restarts.workers: processes that restart within their pod, which static tells "
        "no other pod, got 2; write 0, or rendezvous: c10d or etcd",
    ),
    "role that becomes no variable": (
        trn(role="my-worker"),
        "jobs.tune.role: not a name for a role, which is a part of variables' names, "
        "got 'my-worker'; use at most 13 "
        "lower-case letters and digits, a letter first",
    ),
    "role that makes host names too long": (
        trn(role="w" * 14),
        f"jobs.tune.role: not a name for a role, which is a part of variables' names, "
        f"got '{'w' * 14}'; use at most 13 "
        "lower-case letters and digits, a letter first",
    ),
    # --- volumes and namespace
    "two claims at one path": (
        trn(volumes=[{"claim": "data", "mount_path": "/a"}, own("/a")]) | {"storage": LUSTRE},
        "jobs.tune.volumes[1].mount_path: a path at which another volume is mounted, got '/a'; "
        "choose another",
    ),
    "claim in place of shared memory": (
        trn(volumes=[own("/dev/shm")]),
        f"jobs.tune.volumes[0].mount_path: {TAKEN}devices, and the memory that processes share, "
        "got '/dev/shm'; choose another, such as /data",
    ),
    "claim in place of Volcano's list of hosts": (
        trn(volumes=[own("/etc/volcano")]),
        f"jobs.tune.volumes[0].mount_path: {TAKEN}Volcano's list of hosts, "
        "got '/etc/volcano'; choose another, such as /data",
    ),
    "volume in place of the kernel's files": (
        trn(volumes=[own("/proc/sys")]),
        f"jobs.tune.volumes[0].mount_path: {TAKEN}the kernel's view of its processes, "
        "got '/proc/sys'; choose another, such as /data",
    ),
    "volume at a path that leads upwards": (
        trn(volumes=[own("/data/../etc")]),
        "jobs.tune.volumes[0].mount_path: not an absolute path, got '/data/../etc'; "
        "write it as /data, with no '/' at the end and no '.' or '..' in it",
    ),
    # --- grammars and bounds of Kubernetes
    **{
        f"image {image[:40]}": (
            job(image=image),
            f"jobs.tune.image: not an image, got '{image}'; "
            "write REPOSITORY:TAG, or REGISTRY/REPOSITORY:TAG",
        )
        for image in (
            "docker.io/Train:1",
            "docker.io/a//b:1",
            "docker.io/train:-1",
            "docker.io/train:1@sha256:abc",
            "docker.io:99999/train:1",
            "docker.io/trän:1",
            "docker.io/train:\u0661",
        )
    },
    "memory in thousandths of a byte": (
        job(resources={"memory": "64m"}),
        "jobs.tune.resources.memory: thousandths of a byte, got '64m'; did you mean 64M or 64Mi?",
    ),
    "memory without a unit": (
        job(resources={"memory": 64}),
        "jobs.tune.resources.memory: too little, as a number without a unit is bytes, got 64; "
        "write a unit, such as 64Gi",
    ),
    "memory beyond any count": (
        job(resources={"memory": "1e30"}),
        "jobs.tune.resources.memory: more than Kubernetes counts, got '1e30'; write less",
    ),
    "memory in digits of another script": (
        job(resources={"memory": "\u0666\u0664Gi"}),
        "jobs.tune.resources.memory: not a Kubernetes quantity, got '\u0666\u0664Gi'; "
        "write a number and a unit, such as 64Gi",
    ),
    "less CPU than Kubernetes counts": (
        job(resources={"cpu": "1n"}),
        "jobs.tune.resources.cpu: too little, got '1n'; write at least 1m",
    ),
    "NUL in a word": (
        job(args=["a\0b"]),
        "jobs.tune.args[0]: a NUL character, at which texts of Linux end, got 'a\\x00b'; "
        "leave it out",
    ),
    "NUL in a variable": (
        job(env={"A": "\0"}),
        "jobs.tune.env.A: a NUL character, at which texts of Linux end, got '\\x00'; leave it out",
    ),
    "token of the CDK": (
        job(args=["--name", "${Token[TOKEN.12]}"]),
        "jobs.tune.args[1]: a token of the CDK, which synthesis would resolve, "
        "got '${Token[TOKEN.12]}'; write it without ${Token[",
    ),
    "list token of the CDK in a variable": (
        job(env={"A": "#{Token[TOKEN.7]}"}),
        "jobs.tune.env.A: a token of the CDK, which synthesis would resolve, "
        "got '#{Token[TOKEN.7]}'; write it without ${Token[",
    ),
    "secret that CloudFormation would put in": (
        job(args=["{{resolve:secretsmanager:admin}}"]),
        "jobs.tune.args[0]: a dynamic reference, which CloudFormation would resolve, "
        "got '{{resolve:secretsmanager:admin}}'; name a Kubernetes Secret, or leave it out",
    ),
    **{
        f"{key} beyond its field": (
            job(**changes),
            f"jobs.tune.{key}: out of range, got {2**31}; write at most {most}",
        )
        for key, most, changes in (
            ("nodes", 100_000, {"nodes": 2**31}),
            ("min_nodes", 100_000, {"min_nodes": 2**31}),
            ("processes_per_node", 65_536, {"processes_per_node": 2**31}),
            ("restarts.job", 21_473, {"restarts": {"job": 2**31}}),
            ("restarts.workers", 21_473, {"restarts": {"workers": 2**31}}),
            ("retries", 21_473, {"kind": "batch", "retries": 2**31}),
            ("replicas", 100_000, {"kind": "service", "replicas": 2**31}),
            ("startup_seconds", 604_800, {"kind": "service", "startup_seconds": 2**31}),
            ("ttl_seconds_after_finished", 2**31 - 1, {"ttl_seconds_after_finished": 2**31}),
            ("grace_period_seconds", 2**31 - 1, {"grace_period_seconds": 2**31}),
            ("resources.gpu", 2**31 - 1, {"resources": {"gpu": 2**31}}),
        )
    },
    "namespace that nothing makes": (
        trn(namespace="trainng"),
        "jobs.tune.namespace: not one that the cluster file makes, got 'trainng'; "
        "did you mean training?; a claim under storage makes another",
    ),
    # --- time and capacity
    "grace beyond the notice": (
        job(
            pool_document(instance_types=G6, purchase=SPOT),
            pool="train",
            grace_period_seconds=300,
        ),
        "jobs.tune.grace_period_seconds: longer than the 120 seconds of a Spot notice, got 300; "
        "save the checkpoint in less: write 110",
    ),
    "capacity that the pool has not": (
        gpus(kind="service", capacity="reserved"),
        "jobs.tune.capacity: no pool that it may run on has that capacity, got 'reserved'; "
        "known: on-demand",
    ),
    "health path that is none": (
        gpus(kind="service", health_path="health"),
        "jobs.tune.health_path: not a path of a URL, got 'health'; write it as /health",
    ),
    "kind that is none": (
        gpus(kind="serve"),
        "jobs.tune.kind: unknown value, got 'serve'; did you mean service?",
    ),
    "key of another kind": (
        gpus(kind="batch", min_nodes=2),
        "jobs.tune.min_nodes: unknown key 'min_nodes'; write kind: training, or leave it out",
    ),
    "array of a job that says no kind": (
        gpus(array={"size": 8}),
        "jobs.tune.array: unknown key 'array'; write kind: batch, or leave it out",
    ),
    # --- name
    "job's name with a space": (
        make_document(jobs={"A b": {}}),
        "jobs.A b: not a DNS label of at most 40 characters, got 'A b'; "
        "use lower-case letters, digits and '-', from a letter to a letter or digit",
    ),
    # --- secrets, annotations, scratch, deadline, patch
    "secret beside a variable": (
        with_job(secrets={"HF_TOKEN": "hub"}, env={"HF_TOKEN": "x"}),
        "jobs.tune.secrets.HF_TOKEN: a variable of env as well, got 'hub'; keep env or secrets",
    ),
    "secret beside a role's variable": (
        with_job(secrets={"HF_TOKEN": "hub"}, roles={"a": {"env": {"HF_TOKEN": "x"}}})
        | {"scheduling": VOLCANO},
        "jobs.tune.roles.a.env.HF_TOKEN: a variable of the job's secrets as well, got 'x'; "
        "keep one of both",
    ),
    "secret that hides a setting": (
        with_job(secrets={"NCCL_SOCKET_IFNAME": "hub"}),
        "jobs.tune.secrets.NCCL_SOCKET_IFNAME: a setting of NCCL, EFA, torch or a device's "
        "runtime, which nobody could check there, got 'hub'; write it under env",
    ),
    "secret that torchrun overwrites": (
        with_job(secrets={"RANK": "hub"}),
        "jobs.tune.secrets.RANK: set by torchrun, differently in each process, got 'hub'; "
        "leave it out",
    ),
    "annotation that lets an autoscaler take the node": (
        with_job(annotations={"karpenter.sh/do-not-disrupt": "false"}),
        "jobs.tune.annotations.karpenter.sh/do-not-disrupt: set on the pods of every job, so that "
        "no autoscaler takes their nodes, got 'false'; leave it out",
    ),
    "annotation of Kueue's": (
        with_job(annotations={"kueue.x-k8s.io/podset-required-topology": "x"}),
        "jobs.tune.annotations.kueue.x-k8s.io/podset-required-topology: an annotation that Kueue "
        "sets or reads for its own work, got 'x'; leave it out: queue, priority and topology of "
        "the job say it",
    ),
    "annotation of Volcano's": (
        with_job(annotations={"scheduling.volcano.sh/queue-name": "x"}),
        "jobs.tune.annotations.scheduling.volcano.sh/queue-name: an annotation that Volcano sets "
        "or reads for its own work, got 'x'; leave it out: queue and topology of the job say it",
    ),
    "annotations of a megabyte": (
        with_job(annotations={"a": "x" * 2**20}),
        "jobs.tune.annotations: 1024 KiB, more than the 256 KiB of annotations of an object; "
        "put them into a file on a volume",
    ),
    "scratch in place of a volume": (
        with_job(
            scratch="/data", volumes=[{"claim": "a", "mount_path": "/data", "existing": True}]
        ),
        "jobs.tune.scratch: a path at which a volume is mounted, got '/data'; choose another",
    ),
    "service with an end": (
        with_job(kind="service", deadline_hours=2),
        "jobs.tune.deadline_hours: an end for a service: a Deployment has none, and would start "
        "its pods anew, got 2; leave it out and cancel the service in time, or use kind: batch",
    ),
    "patch of a kind that no job has": (
        with_job(patch={"Pod": {}}),
        "jobs.tune.patch.Pod: no kind of which a job consists, got {}; one of Deployment, "
        "HyperPodPyTorchJob, Job, JobSet, LeaderWorkerSet, NetworkPolicy, PodDisruptionBudget, "
        "PyTorchJob, Service",
    ),
    "patch of a name": (
        with_job(patch={"Job": {"metadata": {"name": "x"}}}),
        "jobs.tune.patch.Job.metadata.name: what the job's objects are found by; "
        "leave it out of the patch",
    ),
}


@pytest.mark.parametrize(("document", "line"), BAD.values(), ids=list(BAD))
def test_a_mistake_is_named_with_its_key_its_value_and_a_way_out(
    document: dict[str, Any], line: str
) -> None:
    assert mistakes_in(document) == [line]


GOOD = {
    "a check before the job as a word": with_job(kind="training", preflight="fabric"),
    "zero of a device": gpus(resources={"gpu": 0, "cpu": 4, "memory": "8Gi"}, kind="batch"),
    "on-demand nodes of a pool that falls back": job(
        pool_document(
            provisioner="karpenter",
            instance_types=G6,
            purchase=SPOT | {"fallback": "on-demand"},
        ),
        pool="train",
        kind="service",
        capacity="on-demand",
    )
    | {"karpenter": {"version": "1.15.2"}},
    "one Neuron device": trn(resources={"neuron": 1}),
    "Volcano's own queue": trn(queue="default") | {"scheduling": VOLCANO},
    "fixed ranks beside etcd": trn(nodes=2, rendezvous="static", restarts={"workers": 0})
    | {"scheduling": VOLCANO | {"rendezvous": {"backend": "etcd", "replicas": 1}}},
    "c10d beside etcd": trn(rendezvous="c10d")
    | {"scheduling": VOLCANO | {"rendezvous": {"backend": "etcd", "replicas": 1}}},
    "a claim of the user's own": trn(volumes=[own("/x")]),
    "one claim at two paths": trn(
        volumes=[{"claim": "data", "mount_path": "/a"}, {"claim": "data", "mount_path": "/b"}]
    )
    | {"storage": LUSTRE},
    "a job of the longest name": make_document(jobs={"n" * 40: {"pool": "train"}}),
    "a role of the longest name": trn(role="w" * 13),
    "an image by its digest": trn(image=f"docker.io/a/b@sha256:{'0' * 64}"),
    "numbers as arguments": trn(script="train.py", args=[1, 2.5, "x"]),
    "a batch job beside controllers": job(
        pool="system", kind="batch", command=["a"], resources={"cpu": 1, "memory": "1Gi"}
    ),
}


@pytest.mark.parametrize("document", GOOD.values(), ids=list(GOOD))
def test_what_is_right_is_taken(document: dict[str, Any]) -> None:
    assert mistakes_in(document) == []


def test_all_mistakes_of_a_job_are_named_at_once() -> None:
    of_form = trn(image="x:latest", role="A", grace_period_seconds=0)
    beside_others = trn(nodes=64, queue="a", priority="top", env={"RANK": "0"})

    assert keys_of(of_form) == ["image", "role", "grace_period_seconds"]
    assert keys_of(beside_others) == ["nodes", "queue", "priority", "env.RANK"]


def keys_of(document: dict[str, Any]) -> list[str]:
    return [line.partition(": ")[0].removeprefix("jobs.tune.") for line in mistakes_in(document)]
