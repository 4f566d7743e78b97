"""`serving.controllers`: controllers of services, and the keys of a service that need them."""

from collections.abc import Iterable, Mapping
from typing import Literal

from ultrascale import config
from ultrascale.config._values import Distinct

ServingController = Literal["keda", "leader-worker-set"]
_CONTROLLERS: tuple[ServingController, ...] = ("keda", "leader-worker-set")


class FileKeys(config.Section):
    """Keys of `serving` for its controllers."""

    controllers: Distinct[ServingController] | None = None
    """Controllers in the cluster: `keda` lets replicas follow the load, `leader-worker-set` runs
    replicas of several nodes.

    Default: those that services of `jobs` need.
    """


def controllers_of(cluster: config.Cluster) -> tuple[ServingController, ...]:
    """Return the controllers of services: those that the file names, or that its services need."""
    services = [job for job in cluster.jobs.values() if isinstance(job, config.ServiceJob)]
    return controllers_for(cluster.section(FileKeys), services)


def controllers_for(
    keys: FileKeys | None, services: Iterable[config.ServiceJob]
) -> tuple[ServingController, ...]:
    """Return the controllers of services: those that the file names, or that ``services`` need."""
    if keys is not None and keys.controllers is not None:
        return tuple(keys.controllers)
    needed = {name for service in services for name in controllers_needed(service)}
    return tuple(name for name in _CONTROLLERS if name in needed)


def controllers_needed(job: config.ServiceJob) -> Mapping[ServingController, str]:
    """Return the controllers that a service needs in the cluster, and the key that asks for each.

    Kueue admits a service by its LeaderWorkerSet.
    """
    needed: dict[ServingController, str] = {}
    if job.autoscale is not None:
        needed["keda"] = "autoscale"
    if job.nodes > 1:
        needed["leader-worker-set"] = "nodes"
    elif job.queue is not None:
        needed["leader-worker-set"] = "queue"
    return needed


@config.rule
def cluster_has_the_controllers(job: config.ServiceJob, serving: FileKeys) -> config.Mistakes:
    if serving.controllers is None:
        return
    for controller, key in controllers_needed(job).items():
        if controller not in serving.controllers:
            wrong = f"needs {controller}, which serving.controllers leaves out"
            todo = f"add {controller} there, or leave out serving.controllers or {key}"
            yield config.refuse(key, wrong, todo, got="")
