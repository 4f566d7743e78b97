"""What the keys of a pool must be to each other and to the cluster."""

import math
from collections.abc import Iterator, Mapping

from ultrascale import catalog
from ultrascale.catalog import kubernetes, matrix
from ultrascale.config._errors import Mistake, refuse
from ultrascale.config.kubernetes import Karpenter
from ultrascale.config.pools import FALLBACK_SUFFIX, RESERVED_NAMES, Nodes, Provisioner, Role
from ultrascale.config.purchase import Purchase, Spot

Mistakes = Iterator[Mistake]

# Domains whose labels the kubelet, Karpenter, EKS or this product set themselves.
_OTHERS_LABELS = (
    "kubernetes.io",
    "k8s.io",
    "karpenter.sh",
    "karpenter.k8s.aws",
    "amazonaws.com",
    "amazon.com",
    "k8s.aws",
    "nvidia.com",
    "ultrascale.dev",
)

# A NodePool takes a hundred, those of its requirements and ours among them.
# Source: https://github.com/aws/karpenter-provider-aws/blob/v1.14.1/pkg/apis/crds/karpenter.sh_nodepools.yaml
_MOST_LABELS = 80

_ANOTHER_TYPE = "choose another instance type"

# A NodePool's name is the value of a label on its nodes.
# Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/
_LONGEST_LABEL_VALUE = 63

# Source: https://docs.aws.amazon.com/eks/latest/userguide/set-builtin-node-pools.html
_AUTO_MODE_NAMES = frozenset({"general-purpose", "system-nodes"})

TWO_OWNERS = (
    "EKS Auto Mode and self-managed Karpenter in one cluster (this product's limit: "
    "both own the karpenter.sh resources)"
)


def name_is_free(name: str) -> Mistakes:
    if name in RESERVED_NAMES:
        todo = "choose another, such as the name of its accelerator"
        yield refuse("name", "the name of one of the cluster's own stacks", todo)


def name_is_not_auto_modes(name: str, provisioner: Provisioner) -> Mistakes:
    if provisioner == "auto-mode" and name in _AUTO_MODE_NAMES:
        wrong = "the name of a NodePool that EKS Auto Mode or this product makes"
        yield refuse("name", wrong, "choose another, such as the name of its accelerator")


def name_has_room(name: str, purchase: Purchase, shards: int) -> Mistakes:
    suffix = f"-{shards}" if shards > 1 else ""
    if isinstance(purchase, Spot) and purchase.fallback != "none":
        suffix += FALLBACK_SUFFIX
    excess = len(name) + len(suffix) - _LONGEST_LABEL_VALUE
    if excess > 0:
        wrong = f"with {suffix} behind it too long for a node label"
        yield refuse("name", wrong, f"write at most {len(name) - excess} characters")


def counts_fit(given: frozenset[str], min: int, max: int | None, static: int | None) -> Mistakes:
    if static is not None:
        for key in sorted(given & {"min", "max"}):
            yield refuse(key, "a second count beside static", "keep static, or min and max")
        if static < 1:
            todo = "write at least 1; a pool that may be empty has a max instead"
            yield refuse("static", "a pool that never has a node", todo)
    elif max is None:
        yield refuse("", "no count of nodes", "add max, or static for a fixed count")
    elif max < 1:
        todo = "write at least 1; min: 0 lets the pool be empty"
        yield refuse("max", "a pool that never has a node", todo)
    elif min > max:
        yield refuse("min", f"more than max: {max}", f"write at most {max}")


def counts_act(provisioner: Provisioner, nodes: Nodes) -> Mistakes:
    if provisioner in matrix.NODE_POOLS and nodes.static is None and nodes.min > 0:
        wrong = f"{provisioner} pools that scale have no minimum"
        yield refuse("nodes.min", wrong, "leave it out, or use static for a fixed count")


def node_pools_of(provisioners: frozenset[str]) -> Provisioner:
    """Return what launches nodes without node groups in a cluster: it has one of the two."""
    return "auto-mode" if "auto-mode" in provisioners else "karpenter"


def static_pools_are_reserved(provisioner: Provisioner, role: Role, nodes: Nodes) -> Mistakes:
    if provisioner in matrix.NODE_POOLS and role == "burst" and nodes.static is not None:
        wrong = "a fixed count in a pool of role burst, which comes and goes with its pods"
        yield refuse("nodes.static", wrong, "write role: reserved, or nodes.max for a burst pool")


def managed_group_holds_the_nodes(
    provisioner: Provisioner,
    purchase: Purchase,
    nodes: Nodes,
    shards: int,
    provisioners: frozenset[str],
) -> Mistakes:
    most = matrix.NODES_PER_MANAGED_NODE_GROUP
    key, count = nodes.upper_count
    # A Capacity Block has fewer, and another rule says so.
    if provisioner != "managed-node-group" or purchase.option == "capacity-block" or count <= most:
        return
    groups = math.ceil(count * shards / most)
    wrong = f"more nodes than the {most} that EKS lets a managed node group have"
    todo = f"use {node_pools_of(provisioners)}"
    if groups <= matrix.MANAGED_NODE_GROUPS:
        todo = (
            f"write shards: {groups} of {math.ceil(count * shards / groups)} nodes each, or {todo}"
        )
    yield refuse(f"nodes.{key}", wrong, todo)


def pool_fits_into_a_cluster(nodes: Nodes, shards: int) -> Mistakes:
    _, count = nodes.upper_count
    total, most = count * shards, kubernetes.NODES_PER_CLUSTER
    if shards > 1 and total > most:
        wrong = f"shards of {total} nodes together, and no cluster has more than {most}"
        yield refuse("shards", wrong, f"write at most {most // count}")


def provisioner_launches_the_types(
    provisioner: Provisioner, instance_types: tuple[str, ...]
) -> Mistakes:
    for number, name in enumerate(instance_types):
        spec = catalog.lookup(name)
        wrong = matrix.why_not_launched(provisioner, spec)
        if wrong is not None:
            todo = "use managed-node-group" if matrix.can_be_planned(spec) else _ANOTHER_TYPE
            yield refuse(f"instance_types.{number}", wrong, todo)


def system_pool_is_there_first(
    role: Role, provisioner: Provisioner, nodes: Nodes, given: frozenset[str]
) -> Mistakes:
    if role != "system":
        return
    if provisioner in ("karpenter", "hyperpod"):
        wrong = f"a system pool that {provisioner} launches: its controllers run on that pool"
        yield refuse("provisioner", wrong, "use managed-node-group")
    elif provisioner in matrix.NODE_GROUPS and nodes.lowest < 1:
        wrong = "a system pool that may be empty: nothing would scale it up"
        got = None if "nodes" in given else ""
        yield refuse("nodes", wrong, "set nodes.min to at least 1", got=got)


def system_pool_has_no_accelerators(role: Role, instance_types: tuple[str, ...]) -> Mistakes:
    for number, name in enumerate(instance_types if role == "system" else ()):
        if catalog.lookup(name).accelerator is not None:
            wrong = "an accelerated type in a system pool: its taint keeps every controller off"
            yield refuse(f"instance_types.{number}", wrong, "use a type without accelerators")


def one_kind_of_hardware(instance_types: tuple[str, ...]) -> Mistakes:
    if len(instance_types) == 1:
        return
    specs = [catalog.lookup(name) for name in instance_types]
    kinds = {spec.accelerator.kind if spec.accelerator else "none" for spec in specs}
    if len(kinds) > 1:
        wrong = f"types with unlike accelerators in one pool ({', '.join(sorted(kinds))})"
        yield refuse("instance_types", wrong, "make a pool of each kind")
    architectures = {spec.architecture for spec in specs}
    if len(architectures) > 1:
        wrong = f"types of unlike architectures in one pool ({', '.join(sorted(architectures))})"
        yield refuse("instance_types", wrong, "make a pool of each architecture")


def zones_have_subnets(zones: tuple[str, ...], network_zones: tuple[str, ...]) -> Mistakes:
    for number, zone in enumerate(zones):
        if zone not in network_zones:
            todo = f"use one of {', '.join(network_zones)}, or add it there"
            yield refuse(f"zones.{number}", "not one of network.zones", todo, got=repr(zone))


def placement_group_has_one_zone(placement_group: bool, zones: tuple[str, ...]) -> Mistakes:
    if placement_group and len(zones) > 1:
        wrong = "a cluster placement group lives in one zone"
        yield refuse("zones", wrong, "keep one zone", got=_listed(zones))


def placement_group_is_not_hyperpods(placement_group: bool, provisioner: Provisioner) -> Mistakes:
    if placement_group and provisioner == "hyperpod":
        wrong = "HyperPod places its instances itself"
        yield refuse("placement_group", wrong, "leave it out")


def placement_group_takes_the_types(
    placement_group: bool, instance_types: tuple[str, ...]
) -> Mistakes:
    for number, name in enumerate(instance_types if placement_group else ()):
        if not catalog.lookup(name).placement_group:
            wrong = "a type that no cluster placement group takes"
            yield refuse(f"instance_types.{number}", wrong, "leave placement_group out")


def efa_has_one_zone(efa: str, zones: tuple[str, ...]) -> Mistakes:
    if efa == "all" and len(zones) > 1:
        wrong = "EFA does not reach from zone to zone"
        yield refuse("zones", wrong, "keep one zone, or set efa: auto", got=_listed(zones))


def efa_has_one_type(efa: str, instance_types: tuple[str, ...]) -> Mistakes:
    if efa == "all" and len(instance_types) > 1:
        wrong = "the layout of EFA interfaces fits one instance type"
        yield refuse("instance_types", wrong, "make a pool of each type, or set efa: auto")


def efa_is_there(efa: str, instance_types: tuple[str, ...]) -> Mistakes:
    for number, name in enumerate(instance_types if efa == "all" else ()):
        if not catalog.lookup(name).efa_cards:
            wrong = "a type without EFA"
            yield refuse(f"instance_types.{number}", wrong, "set efa: none")


def deep_health_checks_are_hyperpods(
    deep_health_checks: bool, provisioner: Provisioner
) -> Mistakes:
    if deep_health_checks and provisioner != "hyperpod":
        yield refuse("deep_health_checks", "only HyperPod has deep health checks", "leave it out")


def labels_fit_a_node_pool(provisioner: Provisioner, labels: Mapping[str, str]) -> Mistakes:
    if provisioner in matrix.NODE_POOLS and len(labels) > _MOST_LABELS:
        wrong = f"more labels than the {_MOST_LABELS} that a NodePool has room for beside ours"
        yield refuse("labels", wrong, f"keep {_MOST_LABELS}", got=str(len(labels)))


def labels_are_free(labels: Mapping[str, str]) -> Mistakes:
    for key in labels:
        domain, slash, _ = key.rpartition("/")
        taken = others_domain(domain) if slash else None
        if taken is not None:
            wrong = f"labels of {taken} are not the cluster file's to set"
            yield Mistake(("labels", key), wrong, "use a domain of your own")


def others_domain(domain: str) -> str | None:
    """Return which of the domains that others set labels and taints of ``domain`` belongs to."""
    taken = (each for each in _OTHERS_LABELS if domain == each or domain.endswith(f".{each}"))
    return next(taken, None)


def karpenter_is_installed(
    provisioner: Provisioner, provisioners: frozenset[str], cluster_karpenter: Karpenter | None
) -> Mistakes:
    if provisioner != "karpenter" or cluster_karpenter is not None:
        return
    if "auto-mode" in provisioners:
        yield refuse("provisioner", TWO_OWNERS, "use auto-mode, or a cluster for each")
    else:
        todo = "add karpenter: {version: …} to the cluster file"
        yield refuse("provisioner", "Karpenter is not installed", todo)


def _listed(values: tuple[str, ...]) -> str:
    return f"[{', '.join(values)}]"
