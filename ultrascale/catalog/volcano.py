"""Volcano: what its queues and jobs may be.

Source: https://volcano.sh/en/docs/queue/
"""

from ultrascale.catalog import kubelet

# Queues that Volcano makes itself.
# Source: https://volcano.sh/en/docs/queue/
OWN_QUEUES = ("default", "root")
# The one of them that takes jobs.
DEFAULT_QUEUE = "default"
# Least and greatest weight of a queue, as the schema of the Queue resource has them.
# Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/config/crd/volcano/bases/scheduling.volcano.sh_queues.yaml
QUEUE_WEIGHTS = (1, 65_535)

RETRY_COUNT_ANNOTATION = "volcano.sh/job-retry-count"
"""On every pod of a job: how often the job was restarted before the pod was made.

Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/controllers/job/job_controller_util.go
"""

POD_GROUP_ANNOTATION = "scheduling.k8s.io/group-name"
"""On every pod of a job: the name of its PodGroup, which is the job's name and its UID.

Source: as above.
"""

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


# Labels `topology.k8s.aws/network-node-layer-N` of a node, 1 the broadest. Some types have a
# fourth.
# Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-topology-prerequisites.html
NETWORK_LAYERS = 3
BROADEST_NETWORK_LAYER = "topology.k8s.aws/network-node-layer-1"
_FOUR_LAYER_TYPES = frozenset({"p6-b200.48xlarge", "p6-b300.48xlarge"})
_PLACED_FAMILIES = frozenset({"g6e", "g7e"})
_PLACED_TYPES = _FOUR_LAYER_TYPES | frozenset(
    {
        *("p4d.24xlarge", "p4de.24xlarge", "p5.48xlarge", "p5e.48xlarge", "p5en.48xlarge"),
        *("p6e-gb200.36xlarge", "trn1.2xlarge", "trn1.32xlarge", "trn1n.32xlarge"),
        *("trn2.48xlarge", "trn2u.48xlarge"),
    }
)


def network_layers(instance_type: str) -> int:
    """Return how many network layers the labels of a node name."""
    return NETWORK_LAYERS + (instance_type in _FOUR_LAYER_TYPES)


def is_placed(instance_type: str) -> bool:
    """Return whether EC2 is known to tell where in its network an instance of the type is.

    Of newer types it may do so before the catalog knows.
    """
    family, _, _ = instance_type.partition(".")
    return family in _PLACED_FAMILIES or instance_type in _PLACED_TYPES
