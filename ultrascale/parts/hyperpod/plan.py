"""The SageMaker HyperPod cluster and its task governance."""

import re
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from ultrascale import config
from ultrascale.catalog import addons, eks, hyperpod, mountpoint, training_operator
from ultrascale.catalog.addons import known_addons
from ultrascale.parts.hyperpod import chart_facts as hyperpod_chart
from ultrascale.parts.hyperpod.model import GovernancePlan, HyperPodPlan, InstanceGroupPlan
from ultrascale.parts.hyperpod.section import HyperPod, TaskGovernance, Team, settings_of
from ultrascale.parts.observability.section import Observability
from ultrascale.plan import names
from ultrascale.plan.addons import installed_addon
from ultrascale.plan.model import (
    AddonPlan,
    IsolationPlan,
    NetworkPlan,
    PoolPlan,
    SubnetPlan,
    TeamPlan,
)
from ultrascale.plan.model.jobs import Sharing
from ultrascale.plan.network.demand import ZoneDemand, first_that_hold, single_addresses
from ultrascale.plan.network.vpc import node_subnet_kind, subnets_of

# HyperPod sets the root volume's size, and training images of 20 GB fill it.
_VOLUME_GIB = 500
_MOUNTS = "/fsx"
_VERSION = re.compile("[0-9]+[.][0-9]+")


def plan_hyperpod(
    cluster: config.Cluster, network: NetworkPlan, pools: Sequence[PoolPlan]
) -> HyperPodPlan:
    """Return the HyperPod cluster of the pools of provisioner ``hyperpod``."""
    groups = tuple(_group(cluster, network, pool) for pool in pools)
    settings = settings_of(cluster)
    operated = settings.training_operator
    operator = installed_addon(cluster, addons.TRAINING_OPERATOR, {}) if operated else None
    return replace(
        hyperpod_with_groups(cluster.name, settings, groups),
        governance=_governance(cluster),
        training_operator=operator,
        tags=dict([training_operator.CLUSTER_TAG]) if operated else {},
    )


def hyperpod_with_groups(
    name: str, settings: HyperPod, groups: Sequence[InstanceGroupPlan]
) -> HyperPodPlan:
    """Return the HyperPod cluster of ``groups``, without task governance and training operator."""
    return HyperPodPlan(
        name=name,
        node_recovery=hyperpod.NODE_RECOVERY[settings.node_recovery],
        groups=tuple(groups),
        governance=None,
        least_privilege=settings.least_privilege,
    )


def plan_instance_group(
    pool: config.Pool,
    plan: PoolPlan,
    *,
    subnets: tuple[SubnetPlan, ...] = (),
    file_systems: Sequence[config.Lustre] = (),
) -> InstanceGroupPlan:
    """Return the instance group of a pool, or of one of its shards.

    Args:
        pool: The pool.
        plan: The plan of the pool, or of the shard.
        subnets: Its subnets; none where others make them.
        file_systems: File systems for its instances, of which those of its zone count.
    """
    purchase = pool.purchase
    near = [file_system for file_system in file_systems if plan.zones == (file_system.zone,)]
    # For the root volume only a key of the user's own is stated.
    volumes = 1 if plan.volume_key is None else 2
    return InstanceGroupPlan(
        name=plan.name,
        instance_types=plan.node_types,
        nodes=plan.initial_nodes,
        training_plan=purchase.plan if isinstance(purchase, config.TrainingPlan) else None,
        deep_health_checks=hyperpod.DEEP_HEALTH_CHECKS if plan.deep_health_checks else (),
        labels=plan.labels,
        taints=plan.taints,
        zones=plan.zones,
        subnets=subnets,
        addresses=single_addresses(plan),
        volume_gib=_VOLUME_GIB,
        volume_key=plan.volume_key,
        # Pods mount every file system, by their claims.
        mounts={
            lustre.name: f"{_MOUNTS}/{lustre.name}"
            for lustre in near[: hyperpod.STORAGE_PER_GROUP - volumes]
        },
    )


def known_version(version: str | None) -> str | None:
    """Return a Kubernetes minor version; None for one older than a cluster file's may be.

    HyperPod takes such a cluster all the same.

    Source:
    https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-prerequisites.html
    """
    if version is None or not _VERSION.fullmatch(version):
        return version
    return None if _version_key(version) < _version_key(eks.SUPPORTED_VERSIONS[0]) else version


def _version_key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def group_subnets(pool: PoolPlan, subnets: Sequence[SubnetPlan]) -> tuple[SubnetPlan, ...]:
    """Return the subnets of a group: in each of its zones the first that hold its instances.

    Not all of them: SageMaker changes the subnets of no group, and one more pod range, which adds
    subnets behind the others, must not change a group that has room.

    Source:
    https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ClusterInstanceGroupSpecification.html

    Args:
        pool: The pool.
        subnets: Subnets of its kind, in the order in which ranges were added.
    """
    share = -(-pool.initial_nodes // len(pool.zones))
    demand = ZoneDemand(share, share * single_addresses(pool))
    chosen = first_that_hold(subnets, dict.fromkeys(pool.zones, demand))
    return tuple(chosen[: hyperpod.SUBNETS_PER_GROUP])


def priority_weights(classes: Mapping[str, int]) -> Mapping[str, int]:
    """Return the weight of each PriorityClass in task governance, highest first.

    Weights go from 0 to 100 and the values of classes do not: only their order counts, so the
    weights are spread evenly, with 100 for the highest.

    Args:
        classes: Value of each class.
    """
    highest_first = sorted(classes, key=lambda name: -classes[name])
    _, most = hyperpod.PRIORITY_WEIGHTS
    count = len(highest_first)
    return {name: most * (count - place) // count for place, name in enumerate(highest_first)}


def share_nodes(nodes: int, teams: Sequence[Team], *, pool: str) -> Mapping[str, int]:
    """Divide the nodes of a pool between teams, by the largest remainder.

    A team that states its nodes gets these; the others share the rest by weight. Of equal
    remainders the first team's counts as the largest.

    Args:
        nodes: Nodes of the pool.
        teams: The teams. Where some state no nodes, one of these has a weight above 0.
        pool: Name of the pool.

    Returns:
        Nodes by team, in the order of the teams.
    """
    stated = {team.name: team.nodes[pool] for team in teams if pool in team.nodes}
    rest = nodes - sum(stated.values())
    others = {team.name: team.fair_share_weight for team in teams if team.name not in stated}
    total = sum(others.values())
    exact = {name: divmod(rest * weight, total) for name, weight in others.items()}
    shares = {name: whole for name, (whole, _) in exact.items()}
    by_remainder = sorted(exact, key=lambda name: -exact[name][1])
    for name in by_remainder[: rest - sum(shares.values()) if others else 0]:
        shares[name] += 1
    return {team.name: (stated | shares)[team.name] for team in teams}


def _group(cluster: config.Cluster, network: NetworkPlan, plan: PoolPlan) -> InstanceGroupPlan:
    return plan_instance_group(
        cluster.pool(plan.pool),
        plan,
        subnets=_subnets(network, plan),
        file_systems=cluster.storage.lustre if settings_of(cluster).mount_file_systems else (),
    )


def _subnets(network: NetworkPlan, plan: PoolPlan) -> tuple[SubnetPlan, ...]:
    if network.existing is not None:
        return subnets_of(network, plan)
    return group_subnets(plan, network.of_kind(node_subnet_kind(network, plan)))


def _governance(cluster: config.Cluster) -> GovernancePlan | None:
    governance = settings_of(cluster).task_governance
    if governance is None:
        return None
    return GovernancePlan(
        name=cluster.name,
        addon=installed_addon(cluster, addons.GOVERNANCE_ADDON, {}),
        weights=priority_weights(cluster.scheduling.priority_classes),
        teams=tuple(_team(cluster, governance, team) for team in governance.teams),
    )


def _team(cluster: config.Cluster, governance: TaskGovernance, team: Team) -> TeamPlan:
    nodes: dict[str, int] = {}
    for pool in cluster.pools:
        if not pool.is_hyperpod:
            continue
        shares = share_nodes(pool.nodes.highest * pool.shards, governance.teams, pool=pool.name)
        name = f"{hyperpod.TYPE_PREFIX}{pool.instance_types[0]}"
        nodes[name] = nodes.get(name, 0) + shares[team.name]
    return TeamPlan(
        name=team.name,
        quota=names.compute_quota(cluster.name, team.name),
        namespace=names.team_namespace(team.name),
        fair_share_weight=team.fair_share_weight,
        nodes=nodes,
        sharing=_sharing(team),
        borrow_limit_percent=team.borrow_limit_percent,
        cost_center=team.cost_center,
    )


def _sharing(team: Team) -> Sharing:
    if team.borrow_limit_percent is not None:
        return "LendAndBorrow"
    return "Lend" if team.lend else "DontLend"


# --- Admission policy that keeps pods without accelerators off HyperPod nodes without taints ------


# Extended resources of NVIDIA, also slices of MIG, and Neuron devices and cores.
_ACCELERATOR_PREFIXES = ("nvidia.com/", "aws.amazon.com/neuron")
# Namespaces of HyperPod's own programs and of its add-ons.
# Sources:
#     https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-operate-console-ui-governance-setup.html
#     https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-observability-addon-setup.html
#     https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Container-Insights-setup-EKS-addon.html
_NAMESPACES_OF_AWS = (
    "amazon-cloudwatch",
    "hyperpod-observability",
    "kueue-system",
    *hyperpod_chart.NAMESPACES,
    mountpoint.NAMESPACE,
)
_SHARED_LABELS = (names.POOL_LABEL, names.NODE_TYPE_LABEL, names.ROLE_LABEL)


def plan_isolation(pools: Sequence[PoolPlan]) -> IsolationPlan | None:
    """Return the isolation, if a pool has deep health checks, with which HyperPod takes no taints.

    Source:
    https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-resiliency-deep-health-checks.html
    """
    isolated = [pool for pool in pools if pool.deep_health_checks]
    if not isolated:
        return None
    labels = {key: tuple(sorted({pool.labels[key] for pool in isolated})) for key in _SHARED_LABELS}
    return IsolationPlan(
        node_labels={
            **labels,
            names.INSTANCE_TYPE_LABEL: tuple(
                sorted({name for pool in isolated for name in pool.node_types})
            ),
            hyperpod.COMPUTE_TYPE: (hyperpod.COMPUTE_TYPE_HYPERPOD,),
        },
        accelerator_prefixes=_ACCELERATOR_PREFIXES,
        exempt_namespaces=tuple(
            sorted({*_NAMESPACES_OF_AWS, *(addon.namespace for addon in known_addons().values())})
        ),
        suggested_labels={names.ROLE_LABEL: names.SYSTEM_ROLE},
    )


# --- Configuration of HyperPod's observability add-on ---------------------------------------------


# Every kind of metric of the training and of the nodes; the add-on has a setting for each.
_METRICS = (
    "trainingMetrics",
    "taskGovernanceMetrics",
    "nodeMetrics",
    "acceleratedComputeMetrics",
    "networkMetrics",
)
_NO_METRICS = ("inferenceMetrics", "scalingMetrics", "customMetrics")
_SCRAPE_SECONDS = 30


def plan_metrics_addon(cluster: config.Cluster) -> AddonPlan | None:
    """Return HyperPod's observability add-on, if the file asks for it.

    The stack that installs it adds the workspace that it writes to.

    Raises:
        CatalogError: The file names no version of it.

    Source:
    https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-observability-addon-setup.html
    """
    section = cluster.section(Observability)
    if section is None or not section.hyperpod_addon:
        return None
    levels = dict.fromkeys(_METRICS, "BASIC") | dict.fromkeys(_NO_METRICS, "DISABLED")
    settings = {
        "metricsProvider": {
            key: {"level": level, "scrapeInterval": _SCRAPE_SECONDS}
            for key, level in levels.items()
        },
        # CloudWatch's add-on sends them.
        "logging": {"enabled": False},
    }
    return installed_addon(cluster, addons.HYPERPOD_OBSERVABILITY, settings)
