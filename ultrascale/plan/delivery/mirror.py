"""The mirror of public registries, from which a closed network takes every image and chart."""

from collections.abc import Iterator
from dataclasses import replace

from ultrascale import config
from ultrascale.catalog import registries
from ultrascale.catalog.karpenter import CONTROLLER_IMAGE
from ultrascale.mirror_lock import FILE, MirrorLock
from ultrascale.plan.model import ClusterPlan, MirrorPlan


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


def with_copies(plan: ClusterPlan) -> ClusterPlan:
    """Return ``plan`` with the charts of the mirror, whose values name its images.

    Charts come from a registry, as ``oci://``: the function that installs them logs in to a
    private one of Amazon ECR by its own role, through the endpoints that pods have. An archive in
    S3 would have to be at hand while templates are made, which ask nobody.
    """
    mirror = plan.mirror
    if mirror is None:
        return plan
    karpenter, kueue = plan.karpenter, plan.kueue
    if karpenter is not None:
        karpenter = replace(
            karpenter,
            crd_chart=mirror.chart(karpenter.crd_chart),
            chart=mirror.chart(karpenter.chart),
            # The chart names the image by digest, and the mirror keeps digests.
            image=mirror.reference(CONTROLLER_IMAGE),
        )
    if kueue is not None:
        kueue = replace(
            kueue,
            chart=mirror.chart(kueue.chart),
            image=mirror.reference(kueue.image),
            jobset_chart=mirror.chart(kueue.jobset_chart),
            jobset_image=mirror.reference(kueue.jobset_image),
        )
    return replace(plan, karpenter=karpenter, kueue=kueue)


def mirror_warnings(mirror: MirrorPlan | None) -> Iterator[config.Mistake]:
    """Yield that the copies are named by tags alone, which can be moved."""
    if mirror is not None and not mirror.is_recorded:
        wrong = f"no {FILE} beside the file, so copies are named by tags, which can be moved"
        todo = "run `ultrascale mirror FILE copy`, then synthesize again"
        yield config.Mistake(("images", "mirror"), wrong, todo, got="")
