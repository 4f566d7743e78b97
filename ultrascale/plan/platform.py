"""Programs that run in the cluster: device plugins, schedulers, rendezvous."""

from collections.abc import Iterable, Iterator, Sequence

from ultrascale import catalog, config
from ultrascale.catalog import karpenter as karpenter_facts
from ultrascale.catalog import quantities, registries, versions
from ultrascale.core.table import all_parts
from ultrascale.errors import CatalogError
from ultrascale.plan import names
from ultrascale.plan.model import (
    ControllerPlan,
    DevicePluginPlan,
    DevicesPlan,
    NeuronSchedulerExtensionPlan,
    PoolPlan,
    PriorityClassPlan,
    ScalePlan,
)
from ultrascale.plan.rules import rule
from ultrascale.plan.scale import karpenter_scale

# Work of these classes waits for capacity; evicting other work for it would only move the wait.
_NEVER_PREEMPT = frozenset({"low", "preemptible"})

# Architectures on which the EKS node monitoring agent runs DCGM.
_MONITORED_AMI = "AL2023_x86_64_NVIDIA"


def plan_priority_classes(cluster: config.Cluster) -> tuple[PriorityClassPlan, ...]:
    """Return the PriorityClasses, highest first."""
    classes = sorted(cluster.scheduling.priority_classes.items(), key=lambda item: -item[1])
    return tuple(
        PriorityClassPlan(name=name, value=value, preempts=name not in _NEVER_PREEMPT)
        for name, value in classes
    )


def plan_devices(
    cluster: config.Cluster, pools: Sequence[PoolPlan], scale: ScalePlan
) -> DevicesPlan:
    """Return the device plugins of ``pools``, and the programs beside them.

    Raises:
        CatalogError: As `plan_efa_plugin`.
    """
    is_monitored = any(part.exports_devices(cluster) for part in all_parts())
    return DevicesPlan(
        neuron=plan_neuron_plugin(pools),
        neuron_monitor=None if is_monitored else plan_neuron_monitor(pools),
        neuron_scheduler=plan_neuron_scheduler(cluster, scale),
        efa=plan_efa_plugin(cluster, pools),
        nvidia=plan_nvidia_plugin(pools),
        dcgm=plan_dcgm_exporter(pools),
    )


def plan_neuron_plugin(pools: Sequence[PoolPlan]) -> DevicePluginPlan | None:
    """Return the Neuron device plugin, if a pool's nodes have Neuron devices and no plugin.

    It is for every Neuron type of the catalog: a pool added later needs no new plugin.
    """
    return _on_neuron_nodes("neuron-device-plugin", pools)


def plan_neuron_monitor(pools: Sequence[PoolPlan]) -> DevicePluginPlan | None:
    """Return the exporter of Neuron metrics, if we install the Neuron device plugin.

    HyperPod's observability add-on has an exporter of its own. It does not work beside the Neuron
    DRA driver, which we never install.

    Source:
    https://awsdocs-neuron.readthedocs-hosted.com/en/latest/containers/tutorials/k8s-neuron-monitor.html
    """
    return _on_neuron_nodes("neuron-monitor", pools)


def plan_nvidia_plugin(pools: Sequence[PoolPlan]) -> DevicePluginPlan | None:
    """Return the NVIDIA device plugin, if a pool's nodes have NVIDIA GPUs and no plugin."""
    own = _without_plugin(pools, names.NVIDIA_GPU)
    if not own:
        return None
    return DevicePluginPlan(
        image=versions.image("nvidia-device-plugin").reference,
        instance_types=(),
        node_selector={names.GPU_PRESENT_LABEL: "true"},
        taint_keys=_taint_keys(own),
    )


def plan_dcgm_exporter(pools: Sequence[PoolPlan]) -> DevicePluginPlan | None:
    """Return the DCGM exporter, if the EKS node monitoring agent runs DCGM on a pool's nodes.

    The exporter asks the agent's DCGM, which before v1.7.2 runs on x86 alone.

    Source: https://github.com/aws/eks-node-monitoring-agent/blob/main/CHANGELOG.md
    """
    gpus = _without_plugin(pools, names.NVIDIA_GPU)
    own = [pool for pool in gpus if pool.ami_type == _MONITORED_AMI]
    if not own:
        return None
    return DevicePluginPlan(
        image=versions.image("dcgm-exporter").reference,
        instance_types=(),
        node_selector={names.GPU_PRESENT_LABEL: "true", names.ARCHITECTURE_LABEL: "amd64"},
        taint_keys=_taint_keys(own),
    )


def plan_neuron_scheduler(
    cluster: config.Cluster, scale: ScalePlan
) -> NeuronSchedulerExtensionPlan | None:
    """Return the Neuron scheduler extension, if the file asks for it."""
    if not cluster.scheduling.neuron_scheduler_extension:
        return None
    return NeuronSchedulerExtensionPlan(
        extender_image=versions.image("neuron-scheduler").reference,
        scheduler_image=versions.kube_scheduler(cluster.kubernetes.version).reference,
        scheduler_name="neuron-scheduler",
        scheduler_resources=scale.neuron_scheduler,
    )


def plan_efa_plugin(cluster: config.Cluster, pools: Sequence[PoolPlan]) -> DevicePluginPlan | None:
    """Return the EFA device plugin, if a pool's nodes have EFA interfaces and no plugin.

    Raises:
        CatalogError: The Region's add-on registry is not known and the file names none.
    """
    own = [pool for pool in pools if pool.efa_interfaces and pool.facts.runs_pinned_image]
    if not own:
        return None
    registry = cluster.images.eks_registry or registries.eks_registry(cluster.region)
    image = versions.image("aws-efa-k8s-device-plugin").reference
    return DevicePluginPlan(
        image=f"{registry}/{image}",
        instance_types=(),
        node_selector={names.EFA_LABEL: "true"},
        taint_keys=_taint_keys(own),
    )


@rule
def registry_is_known(
    identity: config.Identity,
    images: config.Images,
    network: config.Network,
    pools: config.Readable[config.Pool],
) -> Iterator[config.Mistake]:
    """Yield a Region whose registry, from which the EFA device plugin comes, is not known."""
    needed = any(config.has_efa(pool, network) for pool in pools if pool.facts.runs_pinned_image)
    try:
        if needed and images.eks_registry is None:
            registries.eks_registry(identity.region)
    except CatalogError as error:
        yield config.refuse("region", str(error), got="")


def _on_neuron_nodes(image: str, pools: Sequence[PoolPlan]) -> DevicePluginPlan | None:
    own = _without_plugin(pools, names.NEURON_DEVICE)
    if not own:
        return None
    types = {
        spec.instance_type
        for spec in catalog.INSTANCE_TYPES.values()
        if spec.announced and spec.accelerator and spec.accelerator.kind == "neuron"
    }
    return DevicePluginPlan(
        image=versions.image(image).reference,
        instance_types=tuple(sorted({*types, *(n for pool in own for n in pool.instance_types)})),
        node_selector={},
        taint_keys=_taint_keys(own),
    )


def _without_plugin(pools: Sequence[PoolPlan], accelerator: str) -> list[PoolPlan]:
    """Return the pools of ``accelerator`` whose nodes bring no device plugin along."""
    return [
        pool for pool in pools if pool.accelerator == accelerator and pool.facts.runs_pinned_image
    ]


def _taint_keys(pools: Sequence[PoolPlan]) -> tuple[str, ...]:
    return tuple(sorted({taint.key for pool in pools for taint in pool.taints}))


@rule
def controllers_have_room(
    pools: config.Every[config.Pool],
    karpenter: config.Karpenter | None,
    file: config.Parts,
) -> Iterator[config.Mistake]:
    """Yield system nodes too small for all controllers together, at their largest number.

    Helm waits until each runs. Other pods there are not counted: the stated amount is always
    missing.
    """
    system = [placed for placed in pools.placed if placed.item.role == "system"]
    if not all(one.item.nodes.are_counted for one in system):
        return
    nodes = _most_nodes(pools)
    parts: dict[str, Sequence[ControllerPlan]] = {}
    for part in all_parts():
        parts |= part.controllers(file, nodes)
    if not parts:
        return
    programs_of_parts = [one for programs in parts.values() for one in programs]
    millicpu = sum(quantities.millicpu(one.cpu) * one.replicas for one in programs_of_parts)
    mib = sum(quantities.mib(one.memory) * one.replicas for one in programs_of_parts)
    names = [*parts]
    if karpenter is not None:
        launched = _most_nodes(pool for pool in pools if pool.is_karpenter)
        size = karpenter_scale(launched, karpenter)
        millicpu += size.vcpus * 1000 * karpenter_facts.REPLICAS
        mib += size.memory_gib * 1024 * karpenter_facts.REPLICAS
        names.append("Karpenter")
    vcpus, memory_mib = _room(placed.item for placed in system)
    if system and (vcpus * 1000 < millicpu or memory_mib < mib):
        wrong = (
            f"too few for the controllers of {_names_in_words(names)}, which take "
            f"{millicpu / 1000:g} vCPUs and {mib / 1024:g} GiB together"
        )
        todo = "add nodes, or use larger types"
        yield config.Mistake((*system[0].at, "nodes"), wrong, todo)


def _names_in_words(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _most_nodes(pools: Iterable[config.Pool]) -> int:
    return sum(_most(pool) for pool in pools if pool.nodes.are_counted)


def _most(pool: config.Pool) -> int:
    return pool.nodes.highest * pool.shards


def _room(pools: Iterable[config.Pool]) -> tuple[int, int]:
    """Return the vCPUs and MiB of all nodes of ``pools``, each the largest of its pool."""
    there = [(_most(pool), *_largest(pool)) for pool in pools]
    return sum(nodes * own for nodes, own, _ in there), sum(nodes * own for nodes, _, own in there)


def _largest(pool: config.Pool) -> tuple[int, int]:
    """Return the vCPUs and MiB of the largest node of ``pool``."""
    specs = pool.specs
    return max(spec.vcpus for spec in specs), max(spec.memory_mib for spec in specs)
