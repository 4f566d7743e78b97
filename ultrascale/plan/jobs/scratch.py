"""Local NVMe of nodes as scratch space of pods.

On each provisioner the volumes of pods lie on the node's NVMe disks, if it has any: nodeadm and
Karpenter join them into one volume below the kubelet's folder (`PoolPlan.raid0`), EKS Auto Mode
does so where they are larger than the node's EBS volume, and HyperPod's nodes by our lifecycle
script. An `emptyDir` is then scratch space that the kubelet empties.

Sources:
    https://awslabs.github.io/amazon-eks-ami/nodeadm/doc/api/ (LocalStorageOptions)
    https://karpenter.sh/docs/concepts/nodeclasses/#specinstancestorepolicy
    https://docs.aws.amazon.com/eks/latest/userguide/create-node-class.html
"""

from collections.abc import Iterator, Sequence

from ultrascale import config
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.rules import Nodes, rule
from ultrascale.plan.model import PoolPlan, ScratchPlan

_GB, _GIB = 10**9, 2**30


def local_gb(pool: PoolPlan) -> int | None:
    """Return the GB of NVMe below the volumes of pods on each node of ``pool``; None: on EBS.

    Raises:
        CatalogError: No source states the size of an instance type's disks.
    """
    if not pool.raid0:
        return None
    size = min(spec.nvme_total_gb for spec in pool.specs)
    if pool.is_auto_mode and size * _GB <= pool.root_disk.size_gib * _GIB:
        return None
    return size


def plan_scratch(job: config.Job, pools: Sequence[PoolPlan]) -> ScratchPlan | None:
    """Return the scratch space of a job without mistakes; None where it asks for none.

    Raises:
        CatalogError: No source states the size of an instance type's disks.
    """
    sizes = [size for pool in pools if job.scratch and (size := local_gb(pool)) is not None]
    if job.scratch is None or not sizes:
        return None
    return ScratchPlan(mount_path=job.scratch, gb=min(sizes))


@rule
def scratch_is_local(request: JobRequest, pools: Nodes) -> Iterator[config.Mistake]:
    """Yield scratch space on nodes without local NVMe, and at the path of another volume.

    Args:
        request: The job.
        pools: Its possible pools.
    """
    scratch = request.job.scratch
    if scratch is None:
        return
    if request.job.volumes is None:
        for mount in request.mounts:
            if mount.mount_path == scratch:
                wrong = f"claim {mount.claim} is mounted at this path"
                yield config.refuse("scratch", wrong, "choose another, or list the job's volumes")
    without = sorted({pool.pool for pool in pools if local_gb(pool) is None})
    if without:
        others = sorted({pool.pool for pool in request.pools if local_gb(pool) is not None})
        kinds = sorted(
            {name for pool in pools if pool.pool in without for name in pool.instance_types}
        )
        wrong = f"no local NVMe for pods on nodes of {', '.join(without)} ({', '.join(kinds)})"
        todo = f"name a pool with NVMe: {', '.join(others)}" if others else "use a volume instead"
        yield config.refuse("scratch", wrong, todo)


def notes_of(request: JobRequest, pools: Sequence[PoolPlan]) -> Iterator[str]:
    """Yield the size of a job's scratch space, and how long its content lasts."""
    scratch = plan_scratch(request.job, pools)
    if scratch is not None:
        where = ", ".join(sorted({pool.pool for pool in pools}))
        yield (
            f"{scratch.mount_path} is local NVMe, {scratch.gb:,} GB on each node of {where}, "
            "shared with images and other pods of the node; its files are gone with the pod."
        )
