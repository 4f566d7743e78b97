"""What the keys of a pool must be to each other and to the cluster."""

from collections.abc import Iterator, Mapping

from ultrascale import catalog
from ultrascale.config._errors import Mistake, refuse
from ultrascale.config.kubernetes import Karpenter
from ultrascale.config.pools import RESERVED_NAMES, Nodes, Provisioner, Role
from ultrascale.config.purchase import Purchase, Spot

Mistakes = Iterator[Mistake]

_NODE_GROUPS = ("managed-node-group", "self-managed")
_NODE_POOLS = ("karpenter", "auto-mode")

# Domains whose labels the kubelet, Karpenter, EKS or this product set themselves.
_OTHERS_LABELS = (
    "kubernetes.io",
    "k8s.io",
    "karpenter.sh",
    "karpenter.k8s.aws",
    "amazonaws.com",
    "k8s.aws",
    "ultrascale.dev",
)

# AWS asks for several types and names no number. Two of one size often run short together.
_FEWEST_SPOT_TYPES = 3


def name_is_free(name: str) -> Mistakes:
    if name in RESERVED_NAMES:
        todo = "choose another, such as the name of its accelerator"
        yield refuse("name", "the name of one of the cluster's own stacks", todo)


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
    if provisioner in _NODE_POOLS and nodes.static is None and nodes.min > 0:
        wrong = f"{provisioner} pools that scale have no minimum"
        yield refuse("nodes.min", wrong, "leave it out, or use static for a fixed count")


def system_pool_is_there_first(
    role: Role, provisioner: Provisioner, nodes: Nodes, given: frozenset[str]
) -> Mistakes:
    if role != "system":
        return
    if provisioner in ("karpenter", "hyperpod"):
        wrong = f"a system pool that {provisioner} launches: its controllers run on that pool"
        yield refuse("provisioner", wrong, "use managed-node-group")
    elif provisioner in _NODE_GROUPS and nodes.lowest < 1:
        wrong = "a system pool that may be empty: nothing would scale it up"
        got = None if "nodes" in given else ""
        yield refuse("nodes", wrong, "set nodes.min to at least 1", got=got)


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


def spot_group_has_a_choice(
    provisioner: Provisioner, purchase: Purchase, instance_types: tuple[str, ...]
) -> Mistakes:
    few = len(instance_types) < _FEWEST_SPOT_TYPES
    if few and isinstance(purchase, Spot) and provisioner == "managed-node-group":
        wrong = f"a Spot managed node group of fewer than {_FEWEST_SPOT_TYPES} instance types"
        yield refuse("instance_types", wrong, "add types of like size, or use karpenter")


def labels_are_free(labels: Mapping[str, str]) -> Mistakes:
    for key in labels:
        domain, slash, _ = key.rpartition("/")
        taken = [d for d in _OTHERS_LABELS if domain == d or domain.endswith(f".{d}")]
        if slash and taken:
            wrong = f"{key!r}: labels of {taken[0]} are not the cluster file's to set"
            yield Mistake(("labels", key), wrong, "use a domain of your own")


def karpenter_is_installed(
    provisioner: Provisioner, cluster_karpenter: Karpenter | None
) -> Mistakes:
    if provisioner == "karpenter" and cluster_karpenter is None:
        todo = "add karpenter: {version: …} to the cluster file"
        yield refuse("provisioner", "Karpenter is not installed", todo)
    if provisioner == "auto-mode" and cluster_karpenter is not None:
        wrong = "EKS Auto Mode and self-managed Karpenter in one cluster (this product's limit: "
        wrong += "both own the karpenter.sh resources)"
        yield refuse("provisioner", wrong, "remove karpenter, or use a cluster for each")


def _listed(values: tuple[str, ...]) -> str:
    return f"[{', '.join(values)}]"
