"""What a job needs of each resource at once."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal

from ultrascale.documents import mapping, number, objects
from ultrascale.jobs.fields import Object
from ultrascale.jobs.kinds import VOLCANO_JOB, kind_of
from ultrascale.plan.quantities import amount


def demand(manifests: Iterable[Object]) -> Mapping[str, Decimal]:
    """Return what the gangs of Volcano jobs need at once, by resource.

    Of each task it counts what must run: `minAvailable` pods, all without it; and of a job in one
    task, what the job's own `minAvailable` says.
    """
    needs: dict[str, Decimal] = defaultdict(Decimal)
    for manifest in manifests:
        if kind_of(manifest) != VOLCANO_JOB:
            continue
        tasks = objects(manifest, "spec", "tasks")
        least = number(manifest, "spec", "minAvailable") if len(tasks) == 1 else 0
        for task in tasks:
            replicas = number(task, "replicas", default=1)
            pods = least or number(task, "minAvailable", default=replicas)
            for container in objects(task, "template", "spec", "containers"):
                for resource, requested in _requests(container).items():
                    needs[resource] += pods * requested
    return needs


def _requests(container: Object) -> Mapping[str, Decimal]:
    """Return what a container requests; of what it only limits, it requests the limit."""
    stated = {
        **mapping(container, "resources", "limits"),
        **mapping(container, "resources", "requests"),
    }
    return {resource: amount(str(quantity)) for resource, quantity in stated.items()}
