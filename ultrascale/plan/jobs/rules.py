"""Rules of jobs, each beside the code that knows, and the types of what they may take.

`judgement` says from what each fact follows, and on which rules it rests.
"""

from ultrascale import config
from ultrascale.plan.jobs.controllers import JobController
from ultrascale.plan.jobs.nodes import NodeShare
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.model import ClusterQueuePlan, PoolPlan, QueueingPlan


class WrongKeys(frozenset[str]):
    """Keys of a job with mistakes that are known: what rests on them is not judged."""


class Fitting(tuple[PoolPlan, ...]):
    """Pools that fit what a job says of its nodes, where that and its queue are right."""


class Candidates(tuple[PoolPlan, ...]):
    """Pools of one tier that a job is to run on."""


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
