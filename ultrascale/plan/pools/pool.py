"""Plans of pools, from the file and the facts of their instance types."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from ultrascale import catalog, config
from ultrascale.catalog import eks, versions
from ultrascale.plan import capacity, names
from ultrascale.plan.model import NetworkInterface, PoolPlan, RootDisk, Taint
from ultrascale.plan.rules import rule

# --- Labels and taints of a pool's nodes ----------------------------------------------------------


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


# --- Pods that a node runs at most; `plan.network.vpc` lowers it where its subnets hold fewer -----


def max_pods(spec: catalog.InstanceType, interfaces: tuple[NetworkInterface, ...]) -> int:
    """Return the pods for which a node has addresses, with prefix delegation.

    Pods take addresses from the interfaces that card 0 has left: an EFA-only interface there uses
    up one of its slots, which nodeadm does not subtract. Each slot but an interface's own address
    holds a /28. On managed node groups EKS enforces its own two advised numbers, whatever the
    node's own configuration says.

    Source: https://docs.aws.amazon.com/eks/latest/userguide/choosing-instance-type.html
    """
    efa_on_card_0 = sum(1 for nic in interfaces if nic.card == 0 and nic.kind == "efa-only")
    slots = (spec.enis_card0 - efa_on_card_0) * (spec.ipv4_per_eni - 1)
    addresses = slots * eks.ADDRESSES_PER_PREFIX if spec.prefix_delegation else slots
    return min(addresses + eks.HOST_NETWORK_PODS, eks.advised_max_pods(spec.vcpus))


# --- Network interfaces of a node: ENA and EFA-only -----------------------------------------------


def network_interfaces(spec: catalog.InstanceType) -> tuple[NetworkInterface, ...]:
    """Lay out one ENA interface and one EFA-only interface on each card that supports EFA.

    An EFA-only interface cannot be primary, so on card 0 it takes device 1; everywhere else it
    takes device 0. EFA-only interfaces hold no IP address.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html
    """
    primary = NetworkInterface(card=0, device=0, kind="interface")
    fabric = (
        NetworkInterface(card=card, device=1 if card == 0 else 0, kind="efa-only")
        for card in spec.efa_cards
    )
    return (primary, *fabric)


def why_without_efa(
    pool: config.Pool, specs: tuple[catalog.InstanceType, ...], zones: tuple[str, ...]
) -> str | None:
    """Return the reason why a pool has no EFA; None where it has."""
    if pool.efa == "all":
        return None
    if pool.efa == "none":
        return "efa: none"
    if specs[0].accelerator is None:
        return "no accelerator"
    if not all(spec.efa_cards for spec in specs):
        return "not on these types"
    if len(specs) > 1:
        return "several types"
    if len(zones) > 1:
        return "several zones"
    return None


def node_addresses(spec: catalog.InstanceType) -> int:
    """Return the IPv4 addresses that a node with single addresses takes from its subnet.

    It takes the addresses of one interface for its pods, and one for each further network interface
    with EFA: on HyperPod 50 + 31 for p5.48xlarge.

    Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-prerequisites.html
    """
    return spec.ipv4_per_eni + max(len(spec.efa_cards) - 1, 0)


# --- Plans of pools, from the file and the facts of their instance types --------------------------


# Containers and pods live on the NVMe disks where there are any; the root volume then only holds
# the operating system and logs.
_ROOT_DISK_BESIDE_NVME = RootDisk(size_gib=100, iops=3000, throughput_mibps=125)
# Parallel pull and unpack is bound by the disk: gp3 at 600 to 1000 MiB/s makes it pay.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/ml-realtime-inference.html
_ROOT_DISK_FOR_IMAGES = RootDisk(size_gib=500, iops=16000, throughput_mibps=1000)
_ROOT_DISK_SYSTEM = RootDisk(size_gib=100, iops=3000, throughput_mibps=125)
# An update costs a job no more than the node it would lose to a failure.
_MAX_UNAVAILABLE = 1


def plan_pools(
    pool: config.Pool,
    *,
    kubernetes_version: str,
    network_zones: tuple[str, ...] = (),
    name_servers: tuple[str, ...] = (),
    volume_key: str | None = None,
) -> tuple[PoolPlan, ...]:
    """Return a plan of each shard of ``pool``; `plan_pool` explains the arguments.

    Raises:
        CatalogError: No source states a value that the pool needs.
    """
    numbers = (None,) if pool.shards == 1 else range(1, pool.shards + 1)
    return tuple(
        plan_pool(
            pool,
            kubernetes_version=kubernetes_version,
            network_zones=network_zones,
            shard=number,
            name_servers=name_servers,
            volume_key=volume_key,
        )
        for number in numbers
    )


def plan_pool(
    pool: config.Pool,
    *,
    kubernetes_version: str,
    network_zones: tuple[str, ...] = (),
    shard: int | None = None,
    name_servers: tuple[str, ...] = (),
    volume_key: str | None = None,
) -> PoolPlan:
    """Join ``pool`` with the catalog.

    Args:
        pool: The pool.
        kubernetes_version: Minor version of the kubelets.
        network_zones: Zones of a pool that names none.
        shard: Number of the shard; None where the pool has no shards.
        name_servers: DNS servers of its pods in order; empty for EKS's default.
        volume_key: ARN of the KMS key of its volumes; None: the account's default key of EBS.

    Raises:
        CatalogError: No source states a value that the pool needs.
    """
    specs = pool.specs
    first = specs[0]
    zones = pool.zones or network_zones
    without_efa = why_without_efa(pool, specs, zones)
    interfaces = network_interfaces(first) if without_efa is None else ()
    accelerator = first.accelerator
    release = versions.ami_release(kubernetes_version)
    window = capacity.plan_window(pool)
    return PoolPlan(
        name=pool.name if shard is None else f"{pool.name}-{shard}",
        pool=pool.name,
        shard=shard,
        role=pool.role,
        provisioner=pool.provisioner,
        purchase=pool.purchase.option,
        capacity_type=capacity.capacity_type(pool.purchase),
        reservation=capacity.plan_reservation(pool.purchase),
        window=window,
        fee_per_node_hour=capacity.fee_per_node_hour(pool),
        fallback_nodes=capacity.fallback_nodes(pool),
        instance_types=pool.instance_types,
        node_types=node_types(pool),
        ami_type=first.ami_type,
        ami_release=release.version,
        ami_alias=release.alias,
        ami_parameter=release.image_parameter(first.ami_type),
        kubernetes_version=kubernetes_version,
        zones=zones,
        # A Capacity Block or training plan has no nodes outside its window.
        min_nodes=0 if window else pool.nodes.lowest,
        max_nodes=pool.nodes.highest,
        static=pool.nodes.static is not None,
        initial_nodes=capacity.initial_nodes(pool),
        sized_by=capacity.sized_by(pool),
        deep_health_checks=pool.deep_health_checks,
        accelerator=accelerator.resource_name if accelerator else None,
        accelerators_per_node=min(
            spec.accelerator.count if spec.accelerator else 0 for spec in specs
        ),
        network_interfaces=interfaces,
        without_efa=without_efa,
        max_pods=min(_max_pods(pool, spec, interfaces) for spec in specs),
        labels=node_labels(pool, shard, specs, has_efa=bool(interfaces)),
        taints=(*node_taints(pool, first), *(Taint(**taint.model_dump()) for taint in pool.taints)),
        root_disk=_root_disk(specs),
        volume_key=volume_key,
        raid0=all(spec.nvme_total_gb > 0 for spec in specs),
        parallel_image_pull=accelerator is not None,
        name_servers=name_servers,
        placement_group=pool.placement_group,
        max_unavailable=_MAX_UNAVAILABLE,
        replace_before_launch=accelerator is not None or pool.role == "reserved",
        tags=pool.tags,
        recorded=pool.recorded,
    )


@rule
def facts_are_known(pool: config.Pool) -> Iterator[config.Mistake]:
    """Raise a CatalogError where no source states a fact that the pool's plan needs."""
    for entry, fact in _facts(pool):
        if not entry.knows(fact):
            raise entry.unknown(fact)
    yield from ()


def _facts(pool: config.Pool) -> Iterator[tuple[catalog.InstanceType | catalog.Accelerator, str]]:
    specs = pool.specs
    if pool.efa == "all":
        yield specs[0], "efa_cards"
    elif pool.efa != "none" and specs[0].accelerator is not None:
        for spec in specs:
            yield spec, "efa_cards"
            if not spec.efa_cards:
                break
    yield specs[0], "architecture"
    yield from ((spec.accelerator, "count") for spec in specs if spec.accelerator is not None)
    of_addresses: tuple[str, ...] = ("enis_card0", "ipv4_per_eni", "prefix_delegation", "vcpus")
    if pool.facts.has_single_addresses:
        of_addresses = ("ipv4_per_eni",)
    yield from product(specs, of_addresses)
    for spec in specs:
        yield spec, "nvme_total_gb"
        if not spec.nvme_total_gb:
            return


def node_types(pool: config.Pool) -> tuple[str, ...]:
    """Return the instance types by their names in nodes' labels."""
    return tuple(f"{pool.facts.type_prefix}{name}" for name in pool.instance_types)


def _max_pods(
    pool: config.Pool, spec: catalog.InstanceType, interfaces: tuple[NetworkInterface, ...]
) -> int:
    if pool.facts.has_single_addresses:
        # A HyperPod node has addresses for so many pods: 49 for p5.48xlarge; see `node_addresses`.
        return spec.ipv4_per_eni - 1
    return max_pods(spec, interfaces)


def _root_disk(specs: tuple[catalog.InstanceType, ...]) -> RootDisk:
    if specs[0].accelerator is None:
        return _ROOT_DISK_SYSTEM
    if all(spec.nvme_total_gb > 0 for spec in specs):
        return _ROOT_DISK_BESIDE_NVME
    return _ROOT_DISK_FOR_IMAGES
