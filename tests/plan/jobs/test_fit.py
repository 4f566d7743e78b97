"""A job's pod fits its node, beside all that runs there already.

A pod that asks for a little more than a node has waits for ever: Karpenter launches nothing for
it, and on nodes that are there it stands beside what is paid for.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from tests.support.assembly import Assembly
from tests.support.jobs import (
    BATCH,
    CPU_POOL,
    VOLCANO,
    container,
    job_cluster,
    make_job,
    pod_spec,
    prepared,
    refusals,
    sentences,
)
from tests.support.kubernetes_schemas import containers
from tests.support.pools import ODCR, pool_document
from ultrascale import catalog, config
from ultrascale.catalog import kubernetes, quantities
from ultrascale.errors import CatalogError
from ultrascale.plan.jobs import nodes
from ultrascale.plan.jobs.mistakes import nodes_have_memory
from ultrascale.plan.jobs.rules import Candidates
from ultrascale.plan.model import PoolPlan
from ultrascale.plan.pools.pool import plan_pool

PROVISIONERS = ("managed-node-group", "self-managed", "karpenter", "auto-mode")
# CPU in thousandths and MiB that the node's own pods of EKS add-ons request.
# Sources: the manifests of
#     https://github.com/aws/amazon-vpc-cni-k8s (aws-node: 2 x 25m)
#     https://docs.aws.amazon.com/eks/latest/userguide/managing-kube-proxy.html (100m)
#     https://github.com/kubernetes-sigs/aws-ebs-csi-driver (3 x 10m, 40Mi)
#     https://github.com/kubernetes-sigs/aws-fsx-csi-driver (3 x 10m, 40Mi)
#     https://github.com/aws/eks-charts/tree/master/stable/eks-node-monitoring-agent (2 x 10m, 30Mi)
ADDONS = (50 + 100 + 30 + 30 + 20, 120 + 120 + 60)
# The kubelet's share of memory that the scheduler never sees.
UNSEEN = 0.075
HUGE_PAGES = "hugepages-2Mi"


def planned(name: str, provisioner: str) -> PoolPlan | None:
    """Return the plan of a pool of one type; None where no source states all of its facts."""
    pool = config.Pool.model_construct(
        name="train",
        role="burst",
        provisioner=provisioner,
        nodes=config.Nodes(max=4),
        instance_types=(name,),
        zones=("us-west-2b",),
    )
    try:
        return plan_pool(pool, kubernetes_version="1.35")
    except CatalogError:
        return None


@cache
def pools(provisioner: str) -> list[PoolPlan]:
    return [pool for name in catalog.INSTANCE_TYPES if (pool := planned(name, provisioner))]


each_provisioner = pytest.mark.parametrize("provisioner", PROVISIONERS)


def usable(provisioner: str) -> Iterator[tuple[str, PoolPlan]]:
    """Yield each planned pool whose nodes have room for a job, with its type."""
    for pool in pools(provisioner):
        (name,) = pool.instance_types
        if not [*nodes_have_memory(config.TrainingJob(), Candidates([pool]))]:
            yield name, pool


def room(pool: PoolPlan) -> dict[str, int]:
    """Return what Kubernetes may give to pods of a node, DaemonSets among them."""
    (name,) = pool.instance_types
    spec = catalog.lookup(name)
    cores = spec.vcpus * 1000
    # 6 % of the first core, 1 % of the second, 0.5 % of two more and 0.25 % of the rest.
    for first, last, share in ((0, 1, 0.06), (1, 2, 0.01), (2, 4, 0.005), (4, 9999, 0.0025)):
        cores -= round(max(0, min(spec.vcpus, last) - first) * 1000 * share)
    pages = 5128 * 2 if pool.accelerator and pool.provisioner != "auto-mode" else 0
    memory = int(spec.memory_mib * (1 - UNSEEN)) - (255 + 11 * pool.max_pods) - 100 - pages
    found = {"cpu": cores, "memory": memory, HUGE_PAGES: pages}
    if pool.accelerator:
        found[pool.accelerator] = spec.accelerator.count if spec.accelerator else 0
    return found | {"vpc.amazonaws.com/efa": pool.efa_interfaces}


def requested(pool: PoolPlan, *, gpu: int | None = None) -> dict[str, int]:
    job = config.TrainingJob(resources=config.Resources(gpu=gpu))
    asked = nodes.requests_of(job, nodes.node_share(job, [pool]))
    sizes = {"cpu": quantities.millicpu, "memory": quantities.mib, HUGE_PAGES: quantities.mib}
    return {name: sizes.get(name, int)(value) for name, value in asked.items()}


def daemons(assembly: Assembly) -> dict[str, int]:
    """Return what all DaemonSets of a cluster, and the add-ons, request on one node at most."""
    found: dict[str, int] = {"cpu": ADDONS[0], "memory": ADDONS[1]}
    for document in assembly.documents:
        if document["kind"] == "DaemonSet":
            for each in containers(document):
                found["cpu"] += quantities.millicpu(each["resources"]["requests"]["cpu"])
                found["memory"] += quantities.mib(each["resources"]["requests"]["memory"])
    return found


@each_provisioner
def test_a_whole_node_is_what_its_daemons_leave_and_not_much_less(
    provisioner: str, trainium: Assembly, mixed: Assembly
) -> None:
    beside = [daemons(assembly) for assembly in (trainium, mixed)]
    for name, pool in usable(provisioner):
        has, asked = room(pool), requested(pool)
        for resource, value in asked.items():
            taken = max(each.get(resource, 0) for each in beside)
            assert 0 < value <= has[resource] - taken, (name, resource)
        # Nobody pays for a node to leave a tenth of it idle.
        if has["memory"] > 32 * 1024 and has["cpu"] > 16_000:
            assert asked["cpu"] >= 0.85 * has["cpu"], name
            assert asked["memory"] >= 0.9 * has["memory"], name


@each_provisioner
def test_a_whole_node_has_all_its_devices_and_all_its_efa(provisioner: str) -> None:
    for name, pool in usable(provisioner):
        if pool.accelerator is None:
            continue
        asked = requested(pool)
        assert asked[pool.accelerator] == room(pool)[pool.accelerator], name
        assert asked.get("vpc.amazonaws.com/efa", 0) == pool.efa_interfaces, name
        # Huge pages are for EFA, and Auto Mode sets none aside.
        has_pages = pool.efa_interfaces and provisioner != "auto-mode"
        assert asked.get(HUGE_PAGES) == (5120 if has_pages else None), name


@each_provisioner
def test_as_many_parts_as_a_node_has_fit_it_together(provisioner: str, mixed: Assembly) -> None:
    beside = daemons(mixed)
    for name, pool in usable(provisioner):
        has, count = room(pool), pool.accelerators_per_node
        for gpus in (1, 2, 4):
            if pool.accelerator != "nvidia.com/gpu" or gpus >= count or count % gpus:
                continue
            asked = requested(pool, gpu=gpus)
            assert asked.keys() == {"cpu", "memory", "nvidia.com/gpu"}, name
            for resource, value in asked.items():
                taken = value * (count // gpus) + beside.get(resource, 0)
                assert taken <= has[resource], (name, gpus, resource)


@pytest.mark.parametrize(
    ("vcpus", "millicpu"),
    # As EKS nodes of these sizes state them.
    [(2, 1930), (4, 3920), (8, 7910), (96, 95_690), (128, 127_610), (192, 191_450)],
)
def test_cpu_is_reserved_as_the_kubelet_of_eks_does(vcpus: int, millicpu: int) -> None:
    assert kubernetes.allocatable_millicpu(vcpus) == millicpu


@pytest.mark.parametrize(
    ("instance_type", "takers", "what"),
    [("g5g.xlarge", "huge pages", "memory"), ("r7g.medium", "the kubelet", "CPU")],
)
def test_a_node_that_is_too_small_for_any_job_is_refused(
    instance_type: str, takers: str, what: str
) -> None:
    cluster = job_cluster(pool_document(instance_types=[instance_type], zones=None))

    (line,) = (each for each in sentences(cluster, nodes=1) if "take up" in each)

    assert line == (
        f"job: pool: {takers} and add-ons take up the {what} of nodes of train; choose larger "
        "instance types"
    )


def test_a_pool_of_several_types_is_asked_for_what_the_least_of_them_has() -> None:
    def of(*types: str) -> dict[str, Any]:
        return job_cluster(pool_document(instance_types=[*types], zones=None, efa="none"))

    several = of("g6.12xlarge", "g6e.24xlarge", "g5.48xlarge")
    asked = container(prepared(several, nodes=1))["resources"]["requests"]
    alone = container(prepared(of("g6.12xlarge"), nodes=1))["resources"]["requests"]
    assert asked == alone
    # A job that chooses a type gets all of that type's nodes.
    chosen = {"node.kubernetes.io/instance-type": "g5.48xlarge"}
    job = container(prepared(several, nodes=1, node_selector=chosen))
    assert job["resources"]["requests"]["nvidia.com/gpu"] == "8"
    assert "--nproc-per-node=8" in job["command"][2]


@pytest.mark.parametrize("zone", ["us-west-2a", "us-west-2b"])
def test_a_job_over_efa_is_not_spread_over_pools_between_which_none_passes(zone: str) -> None:
    """It would start, and hang at its first exchange of gradients until it times out."""
    pool = pool_document(name="a", labels={"fleet": "p5"})
    cluster = job_cluster(pool, pool | {"name": "b", "zones": [zone]})
    job = make_job(pool=None, node_selector={"fleet": "p5"})
    assert refusals(cluster, job) == ["pool: efa_stays_in_its_pool"]
    assert not refusals(cluster, job, nodes=1)
    assert not refusals(cluster, job, resources={"efa": 0})
    assert not refusals(cluster, job, node_selector={"fleet": "p5", "ultrascale.dev/pool": "a"})


# --- shared memory ------------------------------------------------------------------------------


def shared_memory(job: Any) -> str | None:
    volumes = [each for each in pod_spec(job).get("volumes", []) if "emptyDir" in each]
    return volumes[0]["emptyDir"]["sizeLimit"] if volumes else None


@pytest.mark.parametrize("resources", [{}, {"memory": "64Gi"}, {"memory": "1e9"}])
def test_shared_memory_is_a_part_of_the_pods_memory(resources: dict[str, str]) -> None:
    """Content of `/dev/shm` counts as memory: if it exceeds the limit, the kernel kills a rank."""
    job, own = prepared(resources=resources), prepared(resources={"shared_memory": "100Gi"})
    memory = quantities.mib(container(job)["resources"]["limits"]["memory"])
    assert quantities.mib(shared_memory(job) or "") == int(memory * 0.25)
    assert shared_memory(own) == "100Gi"
    assert {"name": "shared-memory", "mountPath": "/dev/shm"} in container(own)["volumeMounts"]
    # A pod without accelerators keeps the runtime's.
    plain = BATCH | {"pool": "cpu", "resources": {"cpu": 1, "memory": "1Gi"}}
    assert shared_memory(prepared(job_cluster(CPU_POOL), plain)) is None


# --- what a job says itself ---------------------------------------------------------------------


def test_a_job_without_efa_runs_without_its_variables_and_says_so() -> None:
    """Told to take EFA and nothing else, the Neuron runtime dies on a pod that has none."""
    whole, without = prepared(), prepared(resources={"efa": 0})
    names = [{each["name"] for each in container(job)["env"]} for job in (whole, without)]
    asked, least = (container(job)["resources"] for job in (whole, without))
    assert names[0] - names[1] == {"FI_PROVIDER", "FI_EFA_USE_DEVICE_RDMA"}
    assert not {"vpc.amazonaws.com/efa", HUGE_PAGES} & least["requests"].keys()
    assert whole.notes == ()
    assert without.notes == (
        "Pods on train have no EFA interface (none is asked for): what they tell each other goes "
        "over TCP, many times slower.",
    )
    # Memory is a limit, and CPU none.
    assert asked["limits"] == {k: v for k, v in asked["requests"].items() if k != "cpu"}


@pytest.mark.parametrize(
    ("variable", "value", "idle"),
    [
        ("FI_PROVIDER", "tcp", True),
        ("FI_PROVIDER", "^efa,shm", True),
        ("NCCL_NET", "Socket", True),
        ("NCCL_NET_PLUGIN", "none", True),
        ("FI_PROVIDER", "efa", False),
        ("FI_PROVIDER", "shm,efa", False),
        ("FI_PROVIDER", "^verbs", False),
        ("NCCL_NET", "AWS Libfabric", False),
        ("NCCL_NET_PLUGIN", "ofi", False),
    ],
)
def test_a_variable_that_leaves_efa_idle_is_for_jobs_that_ask_for_none(
    variable: str, value: str, idle: bool
) -> None:
    job = make_job(env={variable: value})
    line = (
        f"job: env.{variable}: leaves the EFA interfaces of the pods idle: traffic would go over "
        f"TCP, got {value}; leave it out; where TCP is meant, write resources: {{efa: 0}}"
    )
    assert sentences(job=job) == ([line] if idle else [])
    assert refusals(job=job | {"resources": {"efa": 0}}) == []
    if not idle:
        assert {"name": variable, "value": value} in container(prepared(job=job))["env"]


@pytest.mark.parametrize(
    ("resources", "line"),
    [
        (
            {"cpu": 122},
            "resources.cpu: resources_fit",
        ),
        (
            {"memory": "512Gi"},
            "resources.memory: resources_fit",
        ),
        (
            {"efa": 9},
            "resources.efa: resources_fit",
        ),
        (
            {"neuron": 1, "memory": "400Gi"},
            "resources.memory: resources_fit",
        ),
        (
            {"neuron": 1, "efa": 1},
            "resources.efa: resources_fit",
        ),
        (
            {"shared_memory": "438Gi"},
            "resources.shared_memory: resources_fit",
        ),
        (
            {"shared_memory": "8Gi", "memory": "8Gi"},
            "resources.shared_memory: resources_fit",
        ),
    ],
)
def test_more_than_a_node_can_give_is_refused(resources: dict[str, Any], line: str) -> None:
    assert refusals(job=make_job(nodes=1, resources=resources)) == [line]


def test_an_elastic_job_that_meets_at_its_first_pod_is_told_what_its_loss_costs() -> None:
    etcd = VOLCANO | {"rendezvous": {"backend": "etcd"}}
    (note,) = prepared(nodes=4, min_nodes=2).notes

    assert note.endswith("rendezvous: etcd lets them go on.")
    assert prepared(job_cluster(scheduling=etcd), nodes=4, min_nodes=2).notes == ()
    assert prepared(nodes=4).notes == ()


def test_fewer_nodes_are_refused_where_a_job_ends_with_its_last_pod() -> None:
    reserved = job_cluster(pool_document(purchase=ODCR, role="reserved"), scheduling=None)

    (line,) = refusals(reserved, make_job(nodes=4, min_nodes=2))

    assert line.startswith("min_nodes: fewer_nodes_can_end")
