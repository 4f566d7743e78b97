"""Resources of Volcano's programs, by the number of a cluster's nodes; see `plan.scale`."""

from collections.abc import Mapping

from msgspec.structs import replace

from ultrascale import config
from ultrascale.parts.volcano.model import VolcanoScale
from ultrascale.plan.model import ResourcesPlan
from ultrascale.plan.scale import plan_scale


def _resources(cpu: str, memory: str, memory_limit: str) -> ResourcesPlan:
    return ResourcesPlan(cpu=cpu, memory=memory, memory_limit=memory_limit)


_1_000 = VolcanoScale(
    # It holds every node and pod of the cluster in memory: kube-scheduler took 2 GiB for 100,000
    # nodes, and Volcano copies its cache for each session.
    scheduler=_resources("500m", "1Gi", "16Gi"),
    nodes_scored_percent=None,
    # As many as Volcano has: a gang of 500 took 9 s so.
    topology_candidates=100,
    # In 6 of 24 starts the scheduler missed that it had all nodes, and waited 60 s, the default,
    # before it placed the first pod.
    sync_seconds=15,
    log_level=3,
    # The request rate and the workers are ten and three times upstream's, which is made for
    # small clusters: a gang of a thousand pods is a thousand requests.
    controllers=_resources("250m", "512Mi", "8Gi"),
    client_qps=500,
    client_burst=1_000,
    workers=10,
    webhooks=_resources("100m", "128Mi", "1Gi"),
    webhook_replicas=2,
)
_5_000 = replace(
    _1_000,
    scheduler=_resources("2", "4Gi", "16Gi"),
    # 20 used no more groups for a gang of 64 than fit in two, 10 for one of 500 than in four.
    topology_candidates=20,
    sync_seconds=20,
    # At 3 it writes a line for each node that a pod does not fit on.
    log_level=2,
    controllers=_resources("500m", "1Gi", "8Gi"),
)
_20_000 = replace(
    _5_000,
    scheduler=_resources("4", "8Gi", "32Gi"),
    topology_candidates=10,
    sync_seconds=30,
    controllers=_resources("1", "2Gi", "16Gi"),
    client_qps=1_000,
    client_burst=2_000,
    workers=20,
    webhooks=_resources("500m", "256Mi", "2Gi"),
    webhook_replicas=3,
)
_100_000 = replace(
    _20_000,
    scheduler=_resources("8", "24Gi", "64Gi"),
    # A thousand of them: kube-scheduler placed two and a half times as many pods so.
    nodes_scored_percent=1,
    sync_seconds=60,
    controllers=_resources("2", "8Gi", "32Gi"),
    client_qps=2_000,
    client_burst=4_000,
    workers=50,
    webhooks=_resources("1", "512Mi", "4Gi"),
)

SCALES: Mapping[int, VolcanoScale] = {
    200: _1_000,
    1_000: _1_000,
    5_000: _5_000,
    20_000: _20_000,
    100_000: _100_000,
}
"""Their resources, by the nodes of a row of `plan.scale.ROWS`."""


def scale_of(cluster: config.Cluster) -> VolcanoScale:
    """Return the resources of Volcano's programs in ``cluster`` at its full size."""
    return SCALES[plan_scale(cluster).nodes]
