"""Admission policy that keeps pods without accelerators off HyperPod nodes without taints."""

from collections.abc import Sequence

from ultrascale.catalog import hyperpod, mountpoint
from ultrascale.catalog.addons import known_addons
from ultrascale.parts.hyperpod import chart_facts as hyperpod_chart
from ultrascale.plan import names
from ultrascale.plan.model import IsolationPlan, PoolPlan

# Extended resources of NVIDIA, the slices of MIG among them, and Neuron devices and cores.
_ACCELERATOR_PREFIXES = ("nvidia.com/", "aws.amazon.com/neuron")
# Where AWS runs what HyperPod and its add-ons consist of.
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

    Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-resiliency-deep-health-checks.html
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
            sorted({*_NAMESPACES_OF_AWS, *(each.namespace for each in known_addons().values())})
        ),
        suggested_labels={names.ROLE_LABEL: names.SYSTEM_ROLE},
    )
