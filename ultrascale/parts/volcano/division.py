"""Division of a job into Volcano Jobs, which hold a limited number of pods."""

from collections.abc import Iterator

from ultrascale.parts.volcano import facts as volcano
from ultrascale.plan.jobs.controllers import Division
from ultrascale.plan.model import PartPlan, TaskPlan


def divide(*, name: str, role: str, pods: int, min_available: int) -> Division:
    """Divide a job.

    Up to a point Volcano itself writes the names of all pods into each of them. Above that there is
    one Service for the pod at which the others meet, and tasks of a legal size; above the next,
    several jobs.

    Args:
        name: Name of the job.
        role: Name of its pods' role.
        pods: Number of its pods.
        min_available: Pods that start together or not at all.
    """
    if pods <= volcano.PODS_PER_TASK and _list_bytes(name, role, pods) < volcano.HOST_LIST_BYTES:
        task = TaskPlan(name=role, role=role, pods=pods, first=0, rank_zero=False)
        part = PartPlan(name=name, tasks=(task,), min_available=min_available, host_list=True)
        return Division(parts=(part,), notes=())
    notes = [
        f"The names of {pods} pods are more than Volcano can write into each of them, so they meet "
        "at the first one through a Service, without a list of hosts."
    ]
    shares = [*_shares(pods, volcano.PODS_PER_JOB)]
    if len(shares) > 1:
        notes.append(
            f"Divided into {len(shares)} Volcano jobs of at most {volcano.PODS_PER_JOB} pods: each "
            "starts all of its own pods together, and those that are there wait for the others."
        )
    parts: list[PartPlan] = []
    for number, (first, count) in enumerate(shares, start=1):
        parts.append(
            PartPlan(
                name=name if len(shares) == 1 else f"{name}-{number}",
                tasks=(*_tasks(role, first, count),),
                min_available=min_available if len(shares) == 1 else count,
                host_list=False,
            )
        )
    return Division(parts=tuple(parts), notes=tuple(notes))


def _list_bytes(name: str, role: str, pods: int) -> int:
    """Return an upper bound of the list, in which each pod is `NAME-ROLE-INDEX.NAME`."""
    longest = f"{name}-{role}-{pods - 1}.{name},"
    return pods * len(longest)


def _tasks(role: str, first: int, pods: int) -> Iterator[TaskPlan]:
    """Yield the tasks of the pods from ``first`` on; the job's first pod has one of its own."""
    if first == 0:
        yield TaskPlan(name=f"{role}0", role=role, pods=1, first=0, rank_zero=True)
        first, pods = 1, pods - 1
    for number, (start, count) in enumerate(_shares(pods, volcano.PODS_PER_TASK), start=1):
        yield TaskPlan(
            name=f"{role}{number}", role=role, pods=count, first=first + start, rank_zero=False
        )


def _shares(pods: int, most: int) -> Iterator[tuple[int, int]]:
    """Yield start and size of the fewest shares of at most ``most`` pods, as equal as can be."""
    count = -(-pods // most)
    start = 0
    for number in range(count):
        size = pods // count + (number < pods % count)
        yield start, size
        start += size
