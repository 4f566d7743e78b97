"""Volcano: bounds of its queues and jobs.

Source: https://volcano.sh/en/docs/queue/
"""

from ultrascale.catalog import kubelet
from ultrascale.core.engine import QueueKinds

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
"""Kinds of its queues, and of what stands in them for a job."""

PODS_PER_TASK = 2_500
"""Most pods of a task."""

HOST_LIST_BYTES = kubelet.LIST_BYTES
"""Most bytes of the names of a task's pods.

The `svc` plugin writes them into one variable, which has a name too, in each of the pods.

Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/controllers/job/plugins/svc/svc.go
"""

PODS_PER_JOB = 10_000
"""Most pods of one job: the names of about 12,000 fill the ConfigMap that the plugin keeps."""


def host(job: str, task: str, index: int) -> str:
    """Return the host name of a pod, as the job's pods resolve it through the plugin `svc`."""
    return f"{job}-{task}-{index}.{job}"
