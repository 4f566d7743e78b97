"""Configuration of HyperPod's observability add-on."""

from ultrascale import config
from ultrascale.catalog import addons
from ultrascale.parts.observability.section import Observability
from ultrascale.plan.addons import installed_addon
from ultrascale.plan.model import AddonPlan

# Every kind of metric of the training and of the nodes; the add-on asks for each by itself.
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

    Whoever installs it adds the workspace that it writes to.

    Raises:
        CatalogError: The file names no version of it.

    Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-observability-addon-setup.html
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
