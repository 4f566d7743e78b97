"""Volcano: bounds of its queues and jobs.

Source: https://volcano.sh/en/docs/queue/
"""

from ultrascale.catalog import kubelet
from ultrascale.catalog.instance_types import lookup

# Queues that Volcano makes itself.
# Source: https://volcano.sh/en/docs/queue/
OWN_QUEUES = ("default", "root")
# Its own queue that takes jobs.
DEFAULT_QUEUE = "default"
# Least and greatest weight of a queue, by the schema of the Queue resource.
# Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/config/crd/volcano/bases/scheduling.volcano.sh_queues.yaml
QUEUE_WEIGHTS = (1, 65_535)

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

PODS_PER_TASK = 2_500
"""Most pods of a task."""

HOST_LIST_BYTES = kubelet.WORD_BYTES - 1024
"""Most bytes of the names of a task's pods.

The `svc` plugin writes them into one variable, which has a name too, in each of the pods.

Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/controllers/job/plugins/svc/svc.go
"""

PODS_PER_JOB = 10_000
"""Most pods of one job: the names of about 12,000 fill the ConfigMap that the plugin keeps."""

# Source: https://kubernetes.io/docs/concepts/configuration/configmap/#motivation and etcd's own
# limit of a request: https://etcd.io/docs/v3.5/dev-guide/limit/
MOST_BYTES = 1024 * 1024
"""Most bytes of one object."""


# Network layers in a node's labels. Some types have a fourth.
# Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-topology-prerequisites.html
NETWORK_LAYERS = 3


def host(job: str, task: str, index: int) -> str:
    """Return the host name of a pod, as the job's pods resolve it through the plugin `svc`."""
    return f"{job}-{task}-{index}.{job}"


def network_layers(instance_type: str) -> int:
    """Return the number of network layers in the labels of a node."""
    spec = lookup(instance_type)
    return spec.network_layers if spec.knows("network_layers") else NETWORK_LAYERS


def is_placed(instance_type: str) -> bool:
    """Return whether EC2 is known to report the network place of instances of the type.

    EC2 may report it for newer types before the catalog knows.
    """
    return lookup(instance_type).knows("network_layers")
