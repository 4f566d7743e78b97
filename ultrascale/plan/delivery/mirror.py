"""The mirror of public registries, from which a closed network takes every image and chart."""

from collections.abc import Iterator

from ultrascale import config
from ultrascale.catalog import registries
from ultrascale.mirror_lock import FILE, MirrorLock
from ultrascale.plan.model import MirrorPlan


def plan_mirror(cluster: config.Cluster, lock: MirrorLock) -> MirrorPlan | None:
    """Return the mirror that the file names, with the digests of its copies.

    Args:
        cluster: The cluster file.
        lock: Record of the copies, from beside the file.
    """
    location = cluster.images.mirror
    if location is None:
        return None
    return MirrorPlan(
        location=location,
        regional=registries.ecr_registry("", cluster.region),
        digests=lock.digests,
        is_recorded=lock.is_there,
    )


def mirror_warnings(mirror: MirrorPlan | None) -> Iterator[config.Mistake]:
    """Yield that the copies are named by tags alone, which can be moved."""
    if mirror is not None and not mirror.is_recorded:
        wrong = f"no {FILE} beside the file, so copies are named by tags, which can be moved"
        todo = "run `ultrascale mirror FILE copy`, then synthesize again"
        yield config.Mistake(("images", "mirror"), wrong, todo, got="")
