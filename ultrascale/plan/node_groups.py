"""What follows from a pool for the Auto Scaling group behind it, where nobody manages that."""

from ultrascale.plan.model import PoolPlan

# Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html
_SPOT_NOTICE_SECONDS = 120


def drain_seconds(plan: PoolPlan) -> int | None:
    """Return how long an instance that goes may wait for its node to be drained, in seconds.

    No longer than the instance lives: EC2 takes Spot Instances and those of a Capacity Block
    whatever waits for them. None where EC2 takes none.
    """
    if plan.window is not None:
        return int((plan.window.reclaimed_from - plan.window.usable_until).total_seconds())
    return _SPOT_NOTICE_SECONDS if plan.capacity_type == "spot" else None


def protected_from_scale_in(plan: PoolPlan) -> bool:
    """Return whether EC2 Auto Scaling may choose no instance to terminate by itself.

    It would, to balance zones, without a look at the jobs. The Cluster Autoscaler terminates the
    instances that it names all the same; a size that the file or the calendar lowers could not be
    reached.

    Source: https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-instance-protection.html
    """
    return plan.sized_by == "cluster-autoscaler" and len(plan.zones) > 1
