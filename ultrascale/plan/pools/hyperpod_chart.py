"""The release of AWS's HyperPod chart, with the parts that a cluster's HyperPod nodes need."""

from collections.abc import Sequence

from ultrascale import catalog
from ultrascale.catalog import addons
from ultrascale.catalog import hyperpod_chart as chart
from ultrascale.catalog.build_environment import CHART_BUILD_ENVIRONMENT
from ultrascale.plan import names, retention
from ultrascale.plan.model import HyperPodChartPlan, PoolPlan, RemoteChartPlan


def plan_hyperpod_chart(
    region: str, pools: Sequence[PoolPlan], *, governed: bool = False
) -> HyperPodChartPlan | None:
    """Return AWS's HyperPod chart, if a pool has provisioner ``hyperpod``.

    Args:
        region: AWS Region, whose registry the health-monitoring agent comes from.
        pools: The cluster's pools.
        governed: Whether task governance shares its nodes.
    """
    own = [pool for pool in pools if pool.is_hyperpod]
    if not own:
        return None
    neuron = _types(own, kind="neuron")
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
        values=_values(region, own),
        controller_node_selector={names.ROLE_LABEL: names.SYSTEM_ROLE},
        daemon_set_types={chart.NEURON_DAEMON_SET: neuron} if neuron else {},
        governance_addon=addons.GOVERNANCE_ADDON if governed else None,
        build=CHART_BUILD_ENVIRONMENT,
        log_retention_days=retention.LOG_DAYS,
        plugin_taints=tuple(sorted({taint.key for pool in own for taint in pool.taints})),
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
            **({"affinity": _on(gpus)} if gpus else {}),
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
                for name, node_type in zip(pool.instance_types, pool.node_types, strict=True)
                if _has(catalog.lookup(name), kind)
            }
        )
    )


def _has(spec: catalog.InstanceType, kind: str | None) -> bool:
    if kind is None:
        return bool(spec.efa_cards)
    return spec.accelerator is not None and spec.accelerator.kind == kind


def _on(types: Sequence[str]) -> dict[str, object]:
    term = {"key": names.INSTANCE_TYPE_LABEL, "operator": "In", "values": list(types)}
    return {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [term]}]
            }
        }
    }
