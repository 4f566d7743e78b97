"""The nodes of a job, and each pod's share of a node."""

import math
from collections.abc import Collection, Sequence

from msgspec.structs import replace

from ultrascale import catalog, config
from ultrascale.catalog import eks, kubernetes, quantities, regions
from ultrascale.catalog.provisioners import ProvisionerFacts
from ultrascale.catalog.recorded import RecordedNodes
from ultrascale.frozen import Frozen
from ultrascale.plan import names
from ultrascale.plan.model import PoolPlan

# The share of add-ons, plugins and exporters of a node, and its least. A test compares it with the
# requests of the DaemonSets of every cluster file.
_SHARE_OF_DAEMONS = 0.05
_DAEMONS_MILLICPU = (1000, 8000)
_DAEMONS_LEAST_MIB = 1024
# AWS's own manifests of EFA jobs ask for this much, of the images' own reserve.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/node-efa.html
_HUGE_PAGES = "5120Mi"
SHARED_MEMORY_PERCENT = 25
"""Share of a pod's memory for /dev/shm: workers pass batches and gradients there."""

# Labels that choose a pool, such as a controller's.
_OF_ONE_POOL = frozenset({names.NODE_TYPE_LABEL, names.POOL_LABEL, names.ROLE_LABEL})

CAPACITY: dict[str, tuple[str, ...]] = {
    "reserved": ("odcr", "capacity-block", "training-plan"),
    "spot": ("spot",),
    "on-demand": ("on-demand",),
}
"""Purchase options behind each kind of capacity that a service may ask for."""


class NodeShare(Frozen):
    """Largest share of a node for a pod, on any of its pools."""

    millicpu: int  # CPU, in thousandths
    memory_mib: int  # Memory, in MiB
    accelerator: str | None  # Extended resource of the accelerators; None without any
    accelerators: int  # Number of accelerators
    processes: int  # Processes for them: one for each GPU or NeuronCore
    efa_interfaces: int  # EFA interfaces
    huge_pages: str | None  # Quantity of huge pages; None without any
    whole: bool  # Whether it is all that a node has for pods


def nodes_of(
    job: config.Job, pools: Sequence[PoolPlan], *, tiers: Collection[str] = ()
) -> tuple[PoolPlan, ...]:
    """Return the pools, or their shards, that fit the keys of ``job``.

    Args:
        job: The job.
        pools: All pools of the cluster.
        tiers: Preferred node types that count; all of them if empty.
    """
    stated = frozenset(key for pool in pools for key in pool.labels)
    preferred = tiers or job.prefer
    return tuple(
        pool
        for pool in pools
        if _may_run_on(job, pool, stated)
        and (not preferred or pool.labels[names.NODE_TYPE_LABEL] in preferred)
    )


def common_facts(pools: Sequence[PoolPlan]) -> ProvisionerFacts | None:
    """Return the facts of all nodes of ``pools``; None where several provisioners launch them."""
    facts = {pool.provisioner: pool.facts for pool in pools}
    return next(iter(facts.values())) if len(facts) == 1 else None


def node_share(job: config.Job, pools: Sequence[PoolPlan]) -> NodeShare:
    """Return the share of a pod of ``job`` that every node of ``pools`` can give.

    Raises:
        CatalogError: No source states a value of an instance type.
    """
    asked = _asked_devices(job.resources)
    shares = [
        _share(pool, spec, asked)
        for pool in pools
        for spec in map(pool.recorded.spec, types_of(job, pool))
        if asked is None or _has(spec, asked)
    ]
    smallest = min(shares, key=lambda share: (share.accelerators, share.memory_mib))
    return NodeShare(
        millicpu=min(share.millicpu for share in shares),
        memory_mib=min(share.memory_mib for share in shares),
        accelerator=smallest.accelerator,
        accelerators=smallest.accelerators,
        processes=smallest.processes,
        efa_interfaces=min(share.efa_interfaces for share in shares),
        huge_pages=smallest.huge_pages if all(share.huge_pages for share in shares) else None,
        whole=all(share.whole for share in shares),
    )


def whole_node(spec: catalog.InstanceType) -> NodeShare:
    """Return the share of a pod that has a node of ``spec`` for itself, on any pool.

    Raises:
        CatalogError: No source states a value of the instance type.
    """
    efa, huge = len(spec.efa_cards), eks.HUGE_PAGES_MIB if spec.accelerator is not None else 0
    return _part(spec, None, huge_pages_mib=huge, efa_interfaces=efa)


def whole_share(pool: PoolPlan, instance_type: str) -> NodeShare:
    """Return the share of a pod that has a node of ``pool`` for itself.

    Raises:
        CatalogError: No source states a value of the instance type.
    """
    return _share(pool, pool.recorded.spec(instance_type), None)


def requests_of(job: config.Job, share: NodeShare) -> dict[str, str]:
    """Return the requests of each pod of ``job``: its own, or its share of a node."""
    said = job.resources
    requests = {
        "cpu": said.cpu or str(share.millicpu // 1000 or f"{share.millicpu}m"),
        "memory": said.memory or f"{share.memory_mib}Mi",
    }
    if share.accelerator is not None:
        requests[share.accelerator] = str(share.accelerators)
    if efa := efa_of(job, share):
        requests[names.EFA_INTERFACE] = str(efa)
        if share.huge_pages is not None:
            requests[names.HUGE_PAGES] = share.huge_pages
    return requests


def most_pods(pools: Sequence[PoolPlan], share: NodeShare) -> int:
    """Return the most pods of ``share``, which has accelerators, that ``pools`` can hold."""
    return sum(pool.max_nodes * (_most(pool) // share.accelerators) for pool in pools)


def _most(pool: PoolPlan) -> int:
    accelerators = [spec.accelerator for spec in pool.specs]
    return max(accelerator.count if accelerator is not None else 0 for accelerator in accelerators)


def efa_of(job: config.Job, share: NodeShare) -> int:
    """Return the EFA interfaces of each pod of ``job``: its own key, or its share of a node."""
    return share.efa_interfaces if job.resources.efa is None else job.resources.efa


def nccl_uses_efa(job: config.TrainingJob | config.ServiceJob, share: NodeShare) -> bool:
    """Return whether the traffic of NCCL between the nodes of ``job`` is to go over EFA.

    Where the job names another network or plugin of NCCL, it has its own way.
    """
    stated = job.env.keys() & {"NCCL_NET", "NCCL_NET_PLUGIN"}
    is_nvidia = share.accelerator == names.NVIDIA_GPU and job.resources.gpu != 0
    return job.nodes > 1 and is_nvidia and not stated and efa_of(job, share) > 0


def shared_memory_of(job: config.Job, requests: dict[str, str], share: NodeShare) -> str | None:
    """Return the size of ``/dev/shm``; None where the runtime's own is enough."""
    if job.resources.shared_memory is not None:
        return job.resources.shared_memory
    if share.accelerator is None and not isinstance(job, config.TrainingJob):
        return None
    return f"{quantities.mib(requests['memory']) * SHARED_MEMORY_PERCENT // 100}Mi"


def _may_run_on(job: config.Job, pool: PoolPlan, stated: frozenset[str]) -> bool:
    if job.pool is not None and job.pool != pool.pool:
        return False
    selector = job.node_selector
    if not all(may_have(pool, key, value, stated) for key, value in selector.items()):
        return False
    if isinstance(job, config.ServiceJob) and job.capacity is not None:
        options = {pool.purchase, *(("on-demand",) if pool.fallback_nodes else ())}
        if not options & set(CAPACITY[job.capacity]):
            return False
    named = job.pool is not None or bool(job.prefer) or bool(_OF_ONE_POOL & selector.keys())
    if pool.role == names.SYSTEM_ROLE and not named:
        return False
    asked = _asked_devices(job.resources)
    if asked is None:
        return True
    return any(_has(spec, asked) for spec in map(pool.recorded.spec, types_of(job, pool)))


def types_of(job: config.Job, pool: PoolPlan) -> tuple[str, ...]:
    """Return the instance types, by EC2's names, that a job may run on."""
    chosen = job.node_selector.get(names.INSTANCE_TYPE_LABEL)
    types = zip(pool.node_types, pool.instance_types, strict=True)
    return tuple(name for label, name in types if chosen in (None, label))


def values_of(pool: PoolPlan, key: str) -> tuple[str, ...]:
    """Return the values of a label on the nodes of ``pool``, as far as the plan knows them."""
    if key == names.ZONE_LABEL:
        return pool.zones
    if key == names.INSTANCE_TYPE_LABEL:
        return pool.node_types
    own = (pool.labels[key],) if key in pool.labels else ()
    if pool.fallback_nodes and key in (names.CAPACITY_LABEL, names.CAPACITY_TYPE_LABEL):
        return (*own, "on-demand")
    return own


def may_have(pool: PoolPlan, key: str, value: str, stated: frozenset[str]) -> bool:
    """Return whether nodes of ``pool`` may have a label; True for labels not ``stated``."""
    if key == names.ZONE_LABEL and any(regions.is_zone_id(zone) for zone in pool.zones):
        return True
    if key in (names.ZONE_LABEL, names.INSTANCE_TYPE_LABEL) or key in stated:
        return value in values_of(pool, key)
    return True


def _asked_devices(resources: config.Resources) -> tuple[str, int] | None:
    if resources.gpu is not None:
        return names.NVIDIA_GPU, resources.gpu
    if resources.neuron is not None:
        return names.NEURON_DEVICE, resources.neuron
    return None


def _has(spec: catalog.InstanceType, asked: tuple[str, int]) -> bool:
    resource, count = asked
    accelerator = spec.accelerator
    if not count:
        return True
    return (
        accelerator is not None
        and accelerator.resource_name == resource
        and accelerator.count >= count
    )


def _share(pool: PoolPlan, spec: catalog.InstanceType, asked: tuple[str, int] | None) -> NodeShare:
    huge = _huge_pages_mib(pool, spec)
    share = _part(
        spec, asked, huge_pages_mib=huge, efa_interfaces=pool.efa_interfaces, recorded=pool.recorded
    )
    # Where none may be set aside none are asked for, and their memory is left to them.
    return share if pool.facts.sets_huge_pages_aside else replace(share, huge_pages=None)


def allocatable(pool: PoolPlan, instance_type: str) -> tuple[int, int]:
    """Return the CPU, in thousandths, and the memory, in MiB, that a node gives its pods.

    Raises:
        CatalogError: No source states a value of the instance type.
    """
    spec = pool.recorded.spec(instance_type)
    return _allocatable(spec, _huge_pages_mib(pool, spec), pool.recorded)


def _huge_pages_mib(pool: PoolPlan, spec: catalog.InstanceType) -> int:
    # EKS Auto Mode sets none aside.
    return eks.HUGE_PAGES_MIB if spec.accelerator is not None and not pool.is_auto_mode else 0


def _allocatable(
    spec: catalog.InstanceType, huge_pages_mib: int, recorded: RecordedNodes
) -> tuple[int, int]:
    if (seen := recorded.allocatable.get(spec.instance_type)) is not None:
        return seen.millicpu, seen.memory_mib
    pods = eks.advised_max_pods(spec.vcpus)
    memory = kubernetes.allocatable_mib(
        spec.memory_mib, max_pods=pods, huge_pages_mib=huge_pages_mib
    )
    return kubernetes.allocatable_millicpu(spec.vcpus), memory


def _part(
    spec: catalog.InstanceType,
    asked: tuple[str, int] | None,
    *,
    huge_pages_mib: int,
    efa_interfaces: int,
    recorded: RecordedNodes | None = None,
) -> NodeShare:
    accelerator = spec.accelerator
    total = accelerator.count if accelerator is not None else 0
    devices = total if asked is None else asked[1]
    # Without devices the job itself states its share of CPU and memory.
    part = devices / total if devices else 1
    millicpu, memory = _allocatable(spec, huge_pages_mib, recorded or RecordedNodes())
    lowest, most = _DAEMONS_MILLICPU
    millicpu -= min(most, max(lowest, math.ceil(millicpu * _SHARE_OF_DAEMONS)))
    memory -= max(_DAEMONS_LEAST_MIB, math.ceil(memory * _SHARE_OF_DAEMONS))
    whole = devices == total
    return NodeShare(
        millicpu=int(millicpu * part),
        memory_mib=int(memory * part),
        accelerator=accelerator.resource_name if accelerator is not None and devices else None,
        accelerators=devices,
        processes=_processes(accelerator, devices) if accelerator is not None and devices else 1,
        efa_interfaces=efa_interfaces if whole else 0,
        huge_pages=_HUGE_PAGES if huge_pages_mib and efa_interfaces and whole else None,
        whole=whole,
    )


def _processes(accelerator: catalog.Accelerator, devices: int) -> int:
    if accelerator.kind == "nvidia":
        return devices
    return devices * accelerator.neuron_cores_logical // accelerator.count
