"""Rules of jobs, each beside the code that needs it, and the types of their arguments.

`judgement` has the source of each fact, and the rules before it.
"""

from ultrascale import config
from ultrascale.plan.jobs.controllers import JobController
from ultrascale.plan.jobs.nodes import NodeShare
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.model import ClusterQueuePlan, PoolPlan, QueueingPlan


class WrongKeys(frozenset[str]):
    """Keys of a job with known mistakes, on which no rule may rest."""


class Fitting(tuple[PoolPlan, ...]):
    """Pools that fit the job's keys, where these and its queue are right."""


class Candidates(tuple[PoolPlan, ...]):
    """Pools of one possible tier of a job."""


class Nodes(tuple[PoolPlan, ...]):
    """The same pools, once their nodes have room for a pod."""


class Requests(dict[str, str]):
    """Quantities that each pod requests, by resource."""


class Roles(tuple[JobRequest, ...]):
    """The roles of a job, each without a mistake of its own."""


rule = config.Rules(
    given=(
        JobRequest,
        WrongKeys,
        config.Job,
        config.TrainingJob,
        config.ServiceJob,
        QueueingPlan,
        ClusterQueuePlan,
        JobController,
        Fitting,
        Candidates,
        Nodes,
        NodeShare,
        Requests,
        Roles,
    )
)
"""Rules of a job; its places are those of the job's keys."""
