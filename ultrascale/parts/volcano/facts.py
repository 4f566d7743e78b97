"""Volcano: bounds of its queues and jobs.

Source: https://volcano.sh/en/docs/queue/
"""

from ultrascale.catalog import kubernetes
from ultrascale.core.engine import QueueKinds
from ultrascale.frozen import Frozen

# Queues that Volcano makes itself.
# Source: https://volcano.sh/en/docs/queue/
OWN_QUEUES = ("default", "root")
# Its own queue that takes jobs.
DEFAULT_QUEUE = "default"
# Volcano 1.15 is built for 1.35; 1.16 brings 1.36.
# Source: https://github.com/volcano-sh/volcano#kubernetes-compatibility
LATEST_KUBERNETES_VERSION = "1.35"

RETRY_COUNT_ANNOTATION = "volcano.sh/job-retry-count"
"""Annotation of every pod of a job: the job's number of restarts before the pod was made.

Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/controllers/job/job_controller_util.go
"""

POD_GROUP_ANNOTATION = "scheduling.k8s.io/group-name"
"""Annotation of every pod of a job: the name of its PodGroup, made of the job's name and UID.

Source: as above.
"""

TASK_INDEX_ANNOTATION = "volcano.sh/task-index"
"""Annotation of every pod of a job: its number in its task.

Source: as above.
"""

# Annotation of pods without a Job of Volcano: the queue of their PodGroup, of which the controllers
# make one for all pods of an owner.
# Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/controllers/podgroup/pg_controller_handler.go
QUEUE_ANNOTATION = "scheduling.volcano.sh/queue-name"
# A pod that names a PodGroup joins it, and waits in its queue, whatever queue the pod names.
# Source: https://github.com/volcano-sh/apis/blob/v1.15.0/pkg/apis/scheduling/v1beta1/labels.go
GROUP_ANNOTATIONS = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
# If the scheduler finds no node for a pod, it tries no other pod of its task in that round.
# Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/scheduler/api/job_info.go
TASK_ANNOTATION = "volcano.sh/task-spec"
SCHEDULER = "volcano"

NAMESPACE = "volcano-system"
"""Namespace of its programs."""
QUEUE_KINDS = QueueKinds(
    group="scheduling.volcano.sh", version="v1beta1", queues="queues", entries="podgroups"
)
"""Kinds of its queues, and of a job's entry in them."""

PODS_PER_TASK = 2_500
"""Most pods of a task."""

HOST_LIST_BYTES = kubernetes.LIST_BYTES
"""Most bytes of the names of a task's pods.

The `svc` plugin writes them into one variable, which has a name too, in each of the pods.

Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/controllers/job/plugins/svc/svc.go
"""

PODS_PER_JOB = 10_000
"""Most pods of one job: the names of about 12,000 fill the ConfigMap that the plugin keeps."""


def host(job: str, task: str, index: int) -> str:
    """Return the host name of a pod, as the job's pods resolve it through the plugin `svc`."""
    return f"{job}-{task}-{index}.{job}"


# --- Volcano's time to place a gang: measurements, and the costs derived from them ----------------
# Volcano 1.15.1 tries a gang with a network topology in every HyperNode of a tier that has room for
# it, and keeps the best trial. Each trial places each pod. It finds the HyperNode of a candidate
# node by a walk through the nodes of the lowest tier, twice for each candidate.
#
# Sources:
#     https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/scheduler/actions/allocate/allocate.go
#     https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/scheduler/util/scheduler_helper.go


MEASURED_ON = (
    "Volcano 1.15.1 and kube-scheduler 1.36 against a real API server, November 2026: simulated "
    "trn2 nodes, two processors, seconds from the job's creation to its last bound pod"
)
"""Origin of `MEASURED` and of the costs below."""


class Measured(Frozen):
    """One measurement of a gang's placement by topology."""

    nodes: int  # Nodes of the fleet
    full_percent: int  # Share of these nodes that was busy
    gang: int  # Pods of the gang, one a node
    candidates: int  # Nodes that were scored for a pod
    spread_scored: bool  # Whether `podtopologyspread.weight` was Volcano's default
    seconds: float  # Time to the last bound pod
    groups: int | None  # Groups of the lowest layer that the gang used
    fewest_groups: int | None  # Fewest groups that hold the gang; None where it was not noted


def _measured(
    size: tuple[int, int, int],
    scoring: tuple[int, bool],
    seconds: float,
    groups: tuple[int | None, int | None] = (None, None),
) -> Measured:
    nodes, full, gang = size
    candidates, spread = scoring
    return Measured(
        nodes=nodes,
        full_percent=full,
        gang=gang,
        candidates=candidates,
        spread_scored=spread,
        seconds=seconds,
        groups=groups[0],
        fewest_groups=groups[1],
    )


MEASURED = (
    _measured((1_000, 0, 64), (100, True), 2.1, (4, 2)),
    _measured((1_000, 0, 500), (100, True), 9.3, (22, 19)),
    _measured((5_000, 0, 64), (100, True), 7.2, (3, 2)),
    _measured((5_000, 0, 500), (100, True), 70, (22, 16)),
    _measured((5_000, 50, 64), (100, True), 15),
    _measured((20_000, 0, 64), (100, True), 127, (3, 2)),
    _measured((20_000, 0, 64), (100, False), 56),
    _measured((20_000, 0, 500), (10, False), 78, (20, 16)),
    _measured((20_000, 0, 64), (20, False), 16.5, (4, 2)),
    _measured((20_000, 50, 64), (20, False), 20, (8, 3)),
)
"""See `MEASURED_ON`. All pods of a gang were in as few groups of the next layer as possible."""

MOST_NODES = max(run.nodes for run in MEASURED)
MOST_GANG = max(run.gang for run in MEASURED)
"""Largest fleet, and largest gang, with a measured placement by topology."""

UNAWARE_SECONDS = {64: 3.5, 500: 10.0}
"""Seconds for a gang of so many pods without `networkTopology` on 20,000 nodes, with the plugin on:
15 groups of the lowest layer for 64 pods, 43 for 500.
"""

START_SECONDS = 1.0
SECONDS_A_POD = 0.015
"""Least seconds to create and bind a job, and each of its pods."""

_TRIAL_MS = 1.0
_CANDIDATE_MS = 0.01
_WALK_MS = 10e-6
_SPREAD_MS = 1.2e-3


def placement_seconds(*, nodes: int, candidates: int, spread_scored: bool = False) -> float:
    """Return the seconds to place one pod in one trial.

    Fitted to `MEASURED`: each of its figures is met within a factor of one and a half.

    Args:
        nodes: Nodes of the fleet that HyperNodes hold.
        candidates: Nodes that are scored for the pod.
        spread_scored: Whether the spread of pods is scored, which reads every node.
    """
    spread = _SPREAD_MS * nodes if spread_scored else 0
    return (_TRIAL_MS + _CANDIDATE_MS * candidates + _WALK_MS * candidates * nodes + spread) / 1_000


def too_large(nodes: int) -> str:
    """Return why Volcano cannot place gangs of so large a fleet by topology, with the remedy."""
    return (
        f"{nodes:,} nodes, and Volcano was shown to place gangs by topology on no more than "
        f"{MOST_NODES:,} (a gang of 500 in 78 s, its scoring cut down; the time grows with the "
        "square of the nodes): leave it out, and choose the group of a job yourself, by "
        "node_selector: {topology.k8s.aws/network-node-layer-2: nn-...}"
    )
