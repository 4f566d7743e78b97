"""Labels and annotations of jobs' objects that belong to a controller, and the objects' kinds.

Sources:
    https://kueue.sigs.k8s.io/docs/reference/labels-and-annotations/
    https://github.com/volcano-sh/apis/blob/master/pkg/apis/batch/v1alpha1/labels.go
    https://github.com/kubernetes-sigs/jobset/blob/v0.12.0/api/jobset/v1alpha2/jobset_types.go
    https://kubernetes.io/docs/reference/labels-annotations-taints/
"""

from collections.abc import Mapping
from types import MappingProxyType

from ultrascale.frozen import Frozen

JOB_LABEL = "ultrascale.dev/job"
"""Label of every object and pod of a job: the job's name."""

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
"""Label of a job and its pods: the queue in which they wait, of Kueue or of task governance.

Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-operate-console-ui-governance-tasks-scheduling.html
"""

LABELS_OF_JOBS = (JOB_LABEL, QUEUE_LABEL)
"""Labels that select a job's objects and pods, and labels by which Kueue counts the pods."""

# On a pod template, with the label of a Topology's level as value.
# Source: https://kueue.sigs.k8s.io/docs/concepts/topology_aware_scheduling/
REQUIRED_TOPOLOGY = "kueue.x-k8s.io/podset-required-topology"
PREFERRED_TOPOLOGY = "kueue.x-k8s.io/podset-preferred-topology"
# Pods of all kinds with the same value of this annotation are placed in one domain.
TOPOLOGY_GROUP = "kueue.x-k8s.io/podset-group-name"
MOST_EXECUTION_SECONDS = "kueue.x-k8s.io/max-exec-time-seconds"
"""Label of a workload: most seconds that it may be admitted, over all evictions and restarts.

Source: https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/pkg/controller/core/workload_controller.go
(reconcileMaxExecutionTime)
"""

KEEPS_AUTOSCALERS_OFF: Mapping[str, str] = MappingProxyType(
    {
        "karpenter.sh/do-not-disrupt": "true",
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    }
)
"""Pod annotations that keep Karpenter and the Cluster Autoscaler from removing the node.

Sources:
    https://karpenter.sh/docs/concepts/disruption/#pod-level-controls
    https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md
"""

KINDS_OF_JOBS = (
    "Deployment",
    "HyperPodPyTorchJob",
    "Job",
    "JobSet",
    "LeaderWorkerSet",
    "NetworkPolicy",
    "PodDisruptionBudget",
    "PyTorchJob",
    "RayJob",
    "Service",
)
"""Kinds of jobs' objects, for all engines; `Job` is both Kubernetes' and Volcano's kind."""


class Owner(Frozen, kw_only=False):
    """A controller that sets or reads the annotations of a domain."""

    domain: str  # The domain, with all domains below it
    name: str  # Name of the controller for users
    instead: str  # Remedy: what to do instead of setting an annotation


_LEAVE_OUT = "leave it out"
_OWNERS = (
    Owner("kueue.x-k8s.io", "Kueue", "leave it out, and set the job's queue, priority or topology"),
    Owner("volcano.sh", "Volcano", "leave it out, and set the job's queue or topology"),
    # Volcano's annotation with the name of a pod's PodGroup.
    Owner("scheduling.k8s.io", "Volcano", _LEAVE_OUT),
    Owner("jobset.sigs.k8s.io", "JobSet", _LEAVE_OUT),
    Owner("leaderworkerset.sigs.k8s.io", "LeaderWorkerSet", _LEAVE_OUT),
    Owner("keda.sh", "KEDA", "leave it out, and set the service's autoscale"),
    Owner("batch.kubernetes.io", "Kubernetes' Job", _LEAVE_OUT),
    Owner("ray.io", "KubeRay", _LEAVE_OUT),
    Owner("kubeflow.org", "Kubeflow's training operator", _LEAVE_OUT),
    Owner("sagemaker.amazonaws.com", "HyperPod", _LEAVE_OUT),
    Owner("ultrascale.dev", "this project", _LEAVE_OUT),
)


def owner_of(key: str) -> Owner | None:
    """Return the owner of the annotation ``key``; None if a user may set it."""
    domain = key.rpartition("/")[0]
    return next((o for o in _OWNERS if domain == o.domain or domain.endswith(f".{o.domain}")), None)
