"""EKS add-ons of a cluster: versions and configuration values."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from ultrascale import config
from ultrascale.catalog import addons, auto_mode, eks, kubernetes
from ultrascale.core.table import all_parts
from ultrascale.documents import mapping
from ultrascale.errors import CatalogError
from ultrascale.plan import names
from ultrascale.plan.model import (
    AddonPlan,
    DnsScale,
    NetworkPlan,
    PoolPlan,
    ResourcesPlan,
    ScalePlan,
)
from ultrascale.plan.network.dns import corefile
from ultrascale.plan.network.existing_addresses import PODS_OF_TWO
from ultrascale.plan.network.vpc import PODS_OF_A_PREFIX
from ultrascale.plan.rules import rule
from ultrascale.plan.scale import scale_for
from ultrascale.plan.volumes import mounts_buckets

_CNI = "vpc-cni"
# Nodes join a cluster that has these, or never become Ready.
_NODE_ADDONS = (_CNI, "kube-proxy", "eks-pod-identity-agent")
_WORKLOAD_ADDONS = ("coredns", "aws-ebs-csi-driver", "eks-node-monitoring-agent")
_METRICS_ADDON = "metrics-server"
_LUSTRE_ADDON = "aws-fsx-csi-driver"
_MOUNTPOINT_ADDON = "aws-mountpoint-s3-csi-driver"
_COREDNS_HEADROOM = 4
_PREFIXES: Mapping[str, str] = {"ENABLE_PREFIX_DELEGATION": "true", "WARM_PREFIX_TARGET": "1"}
# In a shared VPC the VPC CNI would take addresses of any subnet that a neighbour has tagged
# kubernetes.io/role/cni.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/cni-subnet-selection.html
_OWN_SUBNETS: Mapping[str, str] = {"ENABLE_SUBNET_DISCOVERY": "false"}

_SYSTEM_NODES: Mapping[str, str] = {names.ROLE_LABEL: names.SYSTEM_ROLE}

# Affinity of controllers: accelerated nodes come and go, and cost too much for them.
ON_SYSTEM_NODES: Mapping[str, object] = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {
                    "matchExpressions": [
                        {
                            "key": names.ROLE_LABEL,
                            "operator": "In",
                            "values": [names.SYSTEM_ROLE],
                        }
                    ]
                }
            ]
        }
    }
}


_RATHER_ON_SYSTEM_NODES: Mapping[str, object] = {
    "nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {
                "weight": 100,
                "preference": {
                    "matchExpressions": [
                        {
                            "key": names.ROLE_LABEL,
                            "operator": "In",
                            "values": [names.SYSTEM_ROLE],
                        }
                    ]
                },
            }
        ]
    }
}
_DCGM_EVERYWHERE: Mapping[str, object] = {"dcgmAgent": {"tolerations": [{"operator": "Exists"}]}}
_COREDNS_PODS = ("k8s-app", "kube-dns")
_EBS_CSI_PODS = ("app", "ebs-csi-controller")


def _anti_affinity(label: str, value: str) -> Mapping[str, object]:
    """Return the affinity that keeps a controller's pods, with this label, off each other.

    Neither add-on documents whether an affinity of ours is merged with its own or replaces it;
    without any anti-affinity `MostAllocated` would put all replicas on one node.
    """
    term = {
        "labelSelector": {"matchLabels": {label: value}},
        "topologyKey": kubernetes.HOSTNAME_LABEL,
    }
    apart = {"weight": 100, "podAffinityTerm": term}
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [apart]}}


@rule
def addons_can_be_installed(
    kubernetes: config.Kubernetes, cluster: config.Cluster
) -> Iterator[config.Mistake]:
    """Yield add-ons whose version no source states or allows, and add-ons without an installer."""
    own = kubernetes.addons
    if (
        kubernetes.version not in eks.SUPPORTED_VERSIONS
        or not own.keys() <= addons.known_addons().keys()
    ):
        return  # a mistake of its own
    wanted = [
        *_node_names(cluster),
        *_workload_names(cluster),
        *(name for part in all_parts() for name in part.addons(cluster)),
    ]
    for name in wanted:
        try:
            _version(name, kubernetes, beside_auto_mode=_has_auto_mode(cluster))
        except CatalogError as error:
            at = ("addons", name) if name in own else ("version",)
            yield config.Mistake(at, str(error), got="")
    for name, version in own.items():
        if name not in wanted:
            wrong = f"not installed in this cluster, got {version!r}"
            yield config.Mistake(("addons", name), wrong, "leave it out", got="")


def node_addons(
    cluster: config.Cluster, network: NetworkPlan, scale: ScalePlan
) -> tuple[AddonPlan, ...]:
    """Return the add-ons that must exist before the first node.

    Raises:
        CatalogError: `addons_can_be_installed` finds a mistake.
    """
    settings = _node_settings(scale, _cni_environment(network, scale))
    return tuple(_plan(cluster, name, settings.get(name, {})) for name in _node_names(cluster))


def workload_addons(
    cluster: config.Cluster,
    pools: Sequence[PoolPlan],
    scale: ScalePlan,
    volume_key: str | None,
) -> tuple[AddonPlan, ...]:
    """Return the add-ons that need system nodes to run on.

    Args:
        cluster: The cluster.
        pools: Its pools.
        scale: Its size.
        volume_key: ARN of the KMS key of the volumes that they make; None: the default key of EBS.

    Raises:
        CatalogError: `addons_can_be_installed` finds a mistake.
    """
    settings = _workload_settings(pools, scale)
    return tuple(
        _plan(cluster, name, settings.get(name, {}), volume_key)
        for name in _workload_names(cluster)
    )


def foreign_addons(
    kubernetes: config.Kubernetes,
) -> tuple[tuple[AddonPlan, ...], tuple[AddonPlan, ...]]:
    """Return the add-ons of a cluster in another owner's VPC, whose nodes no plan knows.

    Returns:
        The add-ons of `node_addons`, and those of `workload_addons`.

    Raises:
        CatalogError: No source states the version of an add-on.
    """
    # As many nodes as may come: EKS scales CoreDNS with them.
    scale = scale_for(1)
    settings = {
        **_node_settings(scale, {**_PREFIXES, **_OWN_SUBNETS}),
        **_workload_settings((), scale),
    }
    first, last = (
        tuple(_addon(name, settings.get(name, {}), kubernetes) for name in addon_names)
        for addon_names in (_NODE_ADDONS, _WORKLOAD_ADDONS)
    )
    return first, tuple(_on_foreign_nodes(addon, scale.dns) for addon in last)


def _node_settings(
    scale: ScalePlan, cni_environment: Mapping[str, str]
) -> Mapping[str, Mapping[str, object]]:
    return {
        _CNI: {
            # Stated either way: EKS keeps the value of a key that is left out.
            "enableNetworkPolicy": "true" if scale.network_policies else "false",
            "env": cni_environment,
        },
        "kube-proxy": _kube_proxy(scale),
    }


def _workload_settings(
    pools: Sequence[PoolPlan], scale: ScalePlan
) -> Mapping[str, Mapping[str, object]]:
    return {
        "coredns": _coredns(pools, scale.dns),
        "aws-ebs-csi-driver": {
            # The containers beside the driver get as much.
            "controller": {
                "affinity": {**ON_SYSTEM_NODES, **_anti_affinity(*_EBS_CSI_PODS)},
                **_resources(scale.ebs_csi),
            },
            **({} if scale.volumes_everywhere else {"node": {"nodeSelector": _SYSTEM_NODES}}),
        },
        _MOUNTPOINT_ADDON: {
            "controller": {"nodeSelector": {names.ROLE_LABEL: names.SYSTEM_ROLE}},
            "node": {"tolerateAllTaints": True},
        },
        "eks-node-monitoring-agent": _node_monitoring_agent(pools),
        _METRICS_ADDON: {
            "nodeSelector": _SYSTEM_NODES,
            "tolerations": [{"key": "CriticalAddonsOnly", "operator": "Exists"}],
        },
    }


def _on_foreign_nodes(addon: AddonPlan, dns: DnsScale) -> AddonPlan:
    """Return an add-on of `workload_addons` for a cluster whose pools are not known.

    Its nodes may be any: without our labels, with GPUs, as many as come later. A pod without a node
    would fail the add-on, and the stack with it.
    """
    settings = addon.configuration
    match addon.name:
        case "coredns":
            bounds = mapping(settings.get("autoScaling"))
            settings = {
                **settings,
                "affinity": {**_RATHER_ON_SYSTEM_NODES, **_anti_affinity(*_COREDNS_PODS)},
                "autoScaling": {**bounds, "maxReplicas": dns.max_replicas},
            }
        case "aws-ebs-csi-driver":
            controller = mapping(settings.get("controller"))
            affinity = {**_RATHER_ON_SYSTEM_NODES, **_anti_affinity(*_EBS_CSI_PODS)}
            # Without a node selector, volumes can be mounted on every node.
            settings = {"controller": {**controller, "affinity": affinity}}
        case "eks-node-monitoring-agent":
            settings = _DCGM_EVERYWHERE
        case _:
            pass
    return replace(addon, configuration=settings)


def installed_addon(
    cluster: config.Cluster, name: str, settings: Mapping[str, object]
) -> AddonPlan:
    """Return an add-on that has a stack of its own.

    Raises:
        CatalogError: `addons_can_be_installed` has a mistake to tell.
    """
    return _plan(cluster, name, settings)


def _cni_environment(network: NetworkPlan, scale: ScalePlan) -> Mapping[str, str]:
    """Return variables that let nodes hold the prefixes, or addresses, of the address plan.

    Targets of addresses take the place of the target of prefixes: a prefix in reserve would double
    the fleet's use.

    Source: https://github.com/aws/amazon-vpc-cni-k8s/blob/master/docs/prefix-and-ip-target.md
    """
    # One function deletes left interfaces instead, `plan.network.interfaces`.
    cleanup = {} if scale.node_cleanup else {"DISABLE_LEAKED_ENI_CLEANUP": "true"}
    if network.existing is not None:
        return {
            "ENABLE_PREFIX_DELEGATION": "true" if network.pod_addresses is None else "false",
            # All at once: NodePools choose among subnets by their free addresses.
            "MINIMUM_IP_TARGET": str(network.most_pods or PODS_OF_TWO),
            "WARM_IP_TARGET": "1",
            **cleanup,
            **_OWN_SUBNETS,
        }
    if network.prefixes_per_node > 1:
        return {**_PREFIXES, **cleanup}
    return {
        "ENABLE_PREFIX_DELEGATION": "true",
        "MINIMUM_IP_TARGET": str(PODS_OF_A_PREFIX),
        "WARM_IP_TARGET": "1",
        **cleanup,
    }


def _node_names(cluster: config.Cluster) -> list[str]:
    return _not_built_in(cluster, _NODE_ADDONS)


def _workload_names(cluster: config.Cluster) -> list[str]:
    lustre = [_LUSTRE_ADDON] if cluster.storage.lustre else []
    buckets = [_MOUNTPOINT_ADDON] if mounts_buckets(cluster) else []
    needs_certificates = any(part.needs_certificates(cluster) for part in all_parts())
    certificates = [addons.CERT_MANAGER] if needs_certificates else []
    metrics = [_METRICS_ADDON] if _reads_cpu(cluster) else []
    return [*_not_built_in(cluster, _WORKLOAD_ADDONS), *lustre, *buckets, *metrics, *certificates]


def _reads_cpu(cluster: config.Cluster) -> bool:
    services = (job for job in cluster.jobs.values() if isinstance(job, config.ServiceJob))
    scaled = (service.autoscale for service in services if service.autoscale is not None)
    return any(service.metric == "cpu" for service in scaled)


def _not_built_in(cluster: config.Cluster, wanted: Iterable[str]) -> list[str]:
    """Return ``wanted`` without EKS Auto Mode's own, in a cluster that has no other nodes."""
    others = any(not pool.is_auto_mode for pool in cluster.pools)
    return [name for name in wanted if others or name not in auto_mode.BUILT_IN]


def _has_auto_mode(cluster: config.Cluster) -> bool:
    return any(pool.is_auto_mode for pool in cluster.pools)


def _version(name: str, kubernetes: config.Kubernetes, *, beside_auto_mode: bool) -> str:
    chosen = kubernetes.addons.get(name) or kubernetes.facts.addons.get(name)
    if chosen is None:
        return addons.version(name, kubernetes.version).version
    version = addons.chosen_version(name, chosen, kubernetes.version)
    floor = auto_mode.ADDON_FLOORS.get(name)
    if beside_auto_mode and floor is not None and addons.parse_release(version) < floor:
        lowest = ".".join(map(str, floor))
        raise CatalogError(
            f"beside EKS Auto Mode the EKS add-on {name} must be v{lowest} or later, which keeps "
            f"off Auto Mode's nodes, got {version!r}"
        )
    return version


def _node_monitoring_agent(pools: Sequence[PoolPlan]) -> Mapping[str, object]:
    """Return the settings by which the agent's DCGM server runs on NVIDIA pools' tainted nodes.

    By itself it tolerates no taint, and it reports GPUs as broken whose DCGM server does not
    answer: node repair replaces their nodes. It chooses its nodes by instance type, Auto Mode's
    excluded.

    Source: https://github.com/aws/containers-roadmap/issues/2567
    """
    kinds = {
        spec.accelerator.kind
        for pool in pools
        if not pool.is_auto_mode
        for spec in pool.specs
        if spec.accelerator is not None
    }
    return _DCGM_EVERYWHERE if "nvidia" in kinds else {}


def _kube_proxy(scale: ScalePlan) -> Mapping[str, object]:
    return {} if scale.proxy_mode is None else {"mode": scale.proxy_mode}


def _coredns(pools: Sequence[PoolPlan], dns: DnsScale) -> Mapping[str, object]:
    """Return settings that scale CoreDNS as EKS would at the pools' full size, within bounds.

    EKS scales it with the nodes; without bounds a large fleet asks for thousands of replicas.
    """
    nodes = sum(pool.max_nodes for pool in pools)
    vcpus = sum(pool.max_nodes * max(spec.vcpus for spec in pool.specs) for pool in pools)
    wanted = max(
        math.ceil(nodes / eks.NODES_PER_COREDNS_REPLICA),
        math.ceil(vcpus / eks.VCPUS_PER_COREDNS_REPLICA),
    )
    most = min(max(_COREDNS_HEADROOM, dns.min_replicas, wanted), dns.max_replicas)
    bounds = {"minReplicas": dns.min_replicas, "maxReplicas": most}
    configuration = corefile(dns)
    return {
        "affinity": {**ON_SYSTEM_NODES, **_anti_affinity(*_COREDNS_PODS)},
        "autoScaling": {"enabled": True, **bounds},
        **({} if configuration is None else {"corefile": configuration}),
        **_resources(dns.resources),
    }


def _resources(plan: ResourcesPlan | None) -> Mapping[str, object]:
    if plan is None:
        return {}
    requests = {"cpu": plan.cpu, "memory": plan.memory}
    return {"resources": {"requests": requests, "limits": {"memory": plan.memory_limit}}}


def _plan(
    cluster: config.Cluster,
    name: str,
    settings: Mapping[str, object],
    volume_key: str | None = None,
) -> AddonPlan:
    return _addon(
        name,
        settings,
        cluster.kubernetes,
        beside_auto_mode=_has_auto_mode(cluster),
        volume_key=volume_key,
    )


def _addon(
    name: str,
    settings: Mapping[str, object],
    kubernetes: config.Kubernetes,
    *,
    beside_auto_mode: bool = False,
    volume_key: str | None = None,
) -> AddonPlan:
    addon = addons.addon(name)
    return AddonPlan(
        name=name,
        version=_version(name, kubernetes, beside_auto_mode=beside_auto_mode),
        configuration=settings,
        # Even without permissions: the association hands the pod its Region, for which it would
        # otherwise ask the instance metadata service, one hop out of its reach.
        service_account=addon.service_account,
        managed_policy=addon.managed_policy,
        association_namespace=None if addon.own_association else addon.namespace,
        volume_key=volume_key if addon.makes_volumes else None,
    )
