"""Restarts of a training job before it counts as failed."""

import math
from collections.abc import Sequence

from ultrascale import config
from ultrascale.catalog import failures, integer_bounds
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.model import PoolPlan

BUDGET = "ULTRASCALE_RESTART_BUDGET"
"""Variable with the node-hours that earn a job one restart."""

# EC2 takes Spot nodes at any time, and each lost node restarts the job.
_RESTARTS, _RESTARTS_ON_SPOT = 10, 100
_RESTARTS_OF_COMPILER = 2
# A fleet may be twice as bad as the published one before its job is given up.
_MARGIN = 2
# Time in which the controller counts failures. The program refills its budget as it saves progress;
# a controller's count is never refilled.
_DAYS = 30


def node_hours_between_failures(job: config.TrainingJob) -> float:
    """Return the node-hours between two failures: stated, or by the published rate."""
    return job.restarts.node_hours_between_failures or failures.PUBLISHED.node_hours_between


def node_hours_of_a_restart(job: config.TrainingJob) -> float:
    """Return the node-hours that earn one restart: stated, or by the rate of failures."""
    half = node_hours_between_failures(job) / _MARGIN
    return job.restarts.budget or (round(half) if half >= 1 else half)


def restarts_of(request: JobRequest, job: config.TrainingJob, pools: Sequence[PoolPlan]) -> int:
    """Return the restarts of all pods before the controller gives the job up.

    The default grows with the nodes: thousands of them fail several times a day, and ten restarts
    would end a sound job on its second day.
    """
    if job.restarts.job is not None:
        return job.restarts.job
    if request.precompile:
        # The compiler refuses the same graph again.
        return _RESTARTS_OF_COMPILER * _counts_of_a_restart(request, job)
    spot = any(pool.capacity_type == "spot" for pool in pools)
    hours = job.deadline_hours or _DAYS * 24
    earned = math.floor(job.nodes * min(hours, _DAYS * 24) / node_hours_of_a_restart(job))
    restarts = (_RESTARTS_ON_SPOT if spot else _RESTARTS) + earned
    return min(restarts * _counts_of_a_restart(request, job), integer_bounds.RESTARTS)


def _counts_of_a_restart(request: JobRequest, job: config.TrainingJob) -> int:
    """Return how many times the controller counts a restart.

    Volcano counts each pod that comes back, and all of them fail with the host of c10d.
    """
    alone = job.min_nodes is not None or request.restarts_alone
    return job.nodes if alone and request.gang else 1
