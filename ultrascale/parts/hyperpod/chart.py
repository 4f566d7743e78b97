"""The release of AWS's HyperPod chart, with the parts that a cluster's HyperPod nodes need."""

from collections.abc import Iterator, Mapping, Sequence

from ultrascale import catalog
from ultrascale.catalog import addons, registries
from ultrascale.catalog.build_environment import CHART_BUILD_ENVIRONMENT
from ultrascale.documents import look_up
from ultrascale.parts.hyperpod import chart_facts as chart
from ultrascale.parts.hyperpod.model import HyperPodChartPlan
from ultrascale.plan import names, retention
from ultrascale.plan.model import ChartCopyPlan, CopiesPlan, PoolPlan, RemoteChartPlan
from ultrascale.plan.model.parts import DaemonSetPlan


def plan_hyperpod_chart(
    region: str,
    pools: Sequence[PoolPlan],
    *,
    governed: bool = False,
    copies: CopiesPlan | None = None,
) -> HyperPodChartPlan:
    """Return AWS's HyperPod chart for the pools of provisioner ``hyperpod``.

    Args:
        region: AWS Region, whose registry has the health-monitoring agent.
        pools: The cluster's pools.
        governed: Whether task governance shares the nodes.
        copies: Copies of all images and charts; None: pods pull the publishers' own.
    """
    own = [pool for pool in pools if pool.is_hyperpod]
    neuron = _types(own, kind="neuron")
    values = _values(region, own)
    return HyperPodChartPlan(
        repository=chart.REPOSITORY,
        commit=chart.COMMIT,
        folder=chart.FOLDER,
        folder_sha256=chart.FOLDER_SHA256,
        remote_charts=tuple(
            RemoteChartPlan(name=remote.name, version=remote.version, sha256=remote.sha256)
            for remote in chart.REMOTE_CHARTS
        ),
        release=chart.RELEASE,
        namespace=chart.NAMESPACE,
        operator_namespace=chart.TRAINING_OPERATOR_NAMESPACE,
        values=values,
        controller_node_selector={names.ROLE_LABEL: names.SYSTEM_ROLE},
        daemon_set_types={chart.NEURON_DAEMON_SET: neuron} if neuron else {},
        governance_addon=addons.GOVERNANCE_ADDON if governed else None,
        build=CHART_BUILD_ENVIRONMENT,
        log_retention_days=retention.LOG_DAYS,
        plugin_taints=tuple(sorted({taint.key for pool in own for taint in pool.taints})),
        copy=None if copies is None else _copy(region, values, copies),
    )


def _values(region: str, pools: Sequence[PoolPlan]) -> dict[str, object]:
    on = {name: {"enabled": True} for name in chart.ALWAYS_ON}
    off = {name: {"enabled": False} for name in chart.ALWAYS_OFF}
    return {
        **on,
        **off,
        **_device_plugins(pools),
        "health-monitoring-agent": {"enabled": True, "region": region},
        # The chart's own Deployment is the placeholder that `helm create` writes: an nginx.
        "replicaCount": 0,
    }


def _device_plugins(pools: Sequence[PoolPlan]) -> dict[str, object]:
    """Return values of the chart's device plugins, each for the types of our pools alone.

    Ours keep off HyperPod's nodes. The chart's own lists lack new types, and name types without
    EFA, on which that plugin crashes: https://github.com/aws/sagemaker-hyperpod-cli/issues/367
    """
    gpus = _types(pools, kind="nvidia")
    fabric = _types(pools, kind=None)
    return {
        "nvidia-device-plugin": {
            "devicePlugin": {"enabled": bool(gpus)},
            **({"affinity": _on_types(gpus)} if gpus else {}),
        },
        "aws-efa-k8s-device-plugin": {
            "devicePlugin": {"enabled": bool(fabric)},
            **({"supportedInstanceLabels": {"values": list(fabric)}} if fabric else {}),
        },
        "neuron-device-plugin": {"devicePlugin": {"enabled": bool(_types(pools, kind="neuron"))}},
    }


def _types(pools: Sequence[PoolPlan], *, kind: str | None) -> tuple[str, ...]:
    """Return the nodes' types with accelerators of ``kind``, or with EFA where that is None."""
    return tuple(
        sorted(
            {
                node_type
                for pool in pools
                for spec, node_type in zip(pool.specs, pool.node_types, strict=True)
                if _has(spec, kind)
            }
        )
    )


def _has(spec: catalog.InstanceType, kind: str | None) -> bool:
    if kind is None:
        return bool(spec.efa_cards)
    return spec.accelerator is not None and spec.accelerator.kind == kind


def _on_types(types: Sequence[str]) -> dict[str, object]:
    term = {"key": names.INSTANCE_TYPE_LABEL, "operator": "In", "values": list(types)}
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [term]}]
            }
        }
    }


def _copy(region: str, values: Mapping[str, object], copies: CopiesPlan) -> ChartCopyPlan:
    images = [chart.TRAINING_OPERATOR_IMAGE]
    for part, image in (
        ("neuron-device-plugin", chart.NEURON_IMAGE),
        ("nvidia-device-plugin", chart.NVIDIA_IMAGE),
    ):
        if look_up(values, part, "devicePlugin", "enabled"):
            images.append(image)
    efa = chart.EFA_REPOSITORY.partition("/")[2]
    idle = copies.copy(chart.IDLE_REPOSITORY)
    return ChartCopyPlan(
        repository=f"oci://{copies.location}/{chart.ARTEFACT}",
        version=chart.ARTEFACT_VERSION,
        digest=copies.digests.get(f"oci://{chart.ARTEFACT}:{chart.ARTEFACT_VERSION}"),
        images={image: copies.reference(image) for image in images},
        renamed={
            chart.EFA_REPOSITORY: f"{registries.eks_registry(region)}/{efa}",
            chart.IDLE_REPOSITORY: idle,
        },
        registries=(copies.location, f"*{copies.regional}"),
        login=copies.login,
    )


def plan_daemon_sets(pools: Sequence[PoolPlan]) -> Iterator[DaemonSetPlan]:
    """Yield the programs of AWS's chart on the nodes of ``pools``."""
    yield _daemon_set(chart.AGENT_DAEMON_SET, pools)
    for accelerator, name in (
        (names.NVIDIA_GPU, "hyperpod nvidia-device-plugin"),
        (names.NEURON_DEVICE, "hyperpod neuron-device-plugin"),
    ):
        yield _daemon_set(name, [pool for pool in pools if pool.accelerator == accelerator])
    fabric = [pool for pool in pools if pool.efa_interfaces > 0]
    yield _daemon_set("hyperpod aws-efa-k8s-device-plugin", fabric)


def _daemon_set(name: str, pools: Sequence[PoolPlan]) -> DaemonSetPlan:
    return DaemonSetPlan(name=name, pools=frozenset(pool.name for pool in pools))
