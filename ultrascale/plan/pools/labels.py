"""Labels and taints of a pool's nodes."""

from collections.abc import Iterator, Mapping, Sequence

from ultrascale import catalog, config
from ultrascale.plan import capacity, names
from ultrascale.plan.model import Taint


def node_labels(
    pool: config.Pool,
    shard: int | None,
    specs: Sequence[catalog.InstanceType],
    *,
    has_efa: bool,
) -> Mapping[str, str]:
    """Return the labels of a pool's nodes, ours and the file's.

    Args:
        pool: The pool.
        shard: Number of the shard; None where the pool has no shards.
        specs: Facts of the pool's instance types.
        has_efa: Whether the nodes have EFA interfaces.
    """
    accelerator = specs[0].accelerator
    labels = {
        names.NODE_TYPE_LABEL: pool.name,
        names.POOL_LABEL: pool.name,
        names.ROLE_LABEL: pool.role,
        names.CAPACITY_LABEL: pool.purchase.option,
        names.CAPACITY_TYPE_LABEL: capacity.capacity_type(pool.purchase),
    }
    if shard is not None:
        labels[names.SHARD_LABEL] = str(shard)
    # CloudFormation refuses a managed group whose labels and whose launch template, which holds the
    # instance type, change in one deploy: https://github.com/aws/containers-roadmap/issues/1258
    managed = pool.is_managed
    if not managed and (gpu_type := _gpu_type(specs)) is not None:
        labels[names.GPU_TYPE_LABEL] = gpu_type
    # Labels by which our device plugins choose their nodes.
    if not pool.facts.brings_plugins:
        if has_efa:
            labels[names.EFA_LABEL] = "true"
        if accelerator is not None and accelerator.kind == "nvidia":
            labels[names.GPU_PRESENT_LABEL] = "true"
            if capacity.sized_by(pool) == "cluster-autoscaler":
                labels[names.AUTOSCALER_GPU_LABEL] = accelerator.kind
    return {**labels, **pool.labels}


def _gpu_type(specs: Sequence[catalog.InstanceType]) -> str | None:
    found: set[str | None] = set()
    for spec in specs:
        gpus = spec.accelerator
        known = gpus is not None and all(map(gpus.knows, ("name", "count", "memory_mib_total")))
        if gpus is None or gpus.kind != "nvidia" or not known:
            return None
        model = gpus.name.removeprefix("NVIDIA ").lower().replace(" ", "-")
        found.add(f"{model}-{gpus.memory_mib_total // gpus.count // 1024}gb")
    return found.pop() if len(found) == 1 else None


def node_taints(pool: config.Pool, spec: catalog.InstanceType) -> Iterator[Taint]:
    """Yield the taints that keep off pods without the pool's accelerators.

    HyperPod takes no taints for groups with deep health checks; its other nodes have the taint of
    HyperPod's jobs, which these tolerate although they tolerate no accelerator's.

    Source:
    https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ClusterKubernetesConfig.html
    """
    if pool.facts.is_dedicated:
        if not pool.deep_health_checks:
            yield Taint(key=names.DEDICATED_TAINT, value=pool.provisioner, effect="NoSchedule")
        return
    if spec.accelerator is None:
        return
    yield Taint(key=spec.accelerator.resource_name, value="true", effect="NoSchedule")
    if isinstance(pool.purchase, config.Spot):
        yield Taint(key=names.SPOT_TAINT, value="true", effect="NoSchedule")
