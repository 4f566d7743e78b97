"""Kubernetes: bounds of its API, and of clusters on EKS.

Sources:
    https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/
    https://aws.amazon.com/blogs/containers/amazon-eks-enables-ultra-scale-ai-ml-workloads-with-support-for-100k-nodes-per-cluster/
"""

from typing import Final

# Most value of a user's PriorityClass; greater values are Kubernetes' own.
# Source: https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/
LEAST_PRIORITY = -(2**31)
GREATEST_PRIORITY = 1_000_000_000
RESERVED_PRIORITY_CLASS_PREFIX = "system-"

# Nodes of the largest EKS cluster.
# Source: https://aws.amazon.com/blogs/containers/amazon-eks-enables-ultra-scale-ai-ml-workloads-with-support-for-100k-nodes-per-cluster/
NODES_PER_CLUSTER = 100_000

COMPLETION_INDEX = "JOB_COMPLETION_INDEX"
"""Environment variable with the index of each pod of an Indexed Job.

Source: https://kubernetes.io/docs/concepts/workloads/controllers/job/#completion-mode
"""

# Most indexes of a Job that counts failures by index, and most of its pods at the same time.
# Source: https://github.com/kubernetes/kubernetes/blob/v1.35.0/pkg/apis/batch/validation/validation.go
MOST_INDEXES = 100_000
MOST_PARALLEL_INDEXES = 100_000
COMPLETION_INDEX_ANNOTATION = "batch.kubernetes.io/job-completion-index"
"""Annotation with the index of each pod of an Indexed Job.

Source:
https://kubernetes.io/docs/reference/labels-annotations-taints/#batch-kubernetes-io-job-completion-index-annotation
"""

# Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set
LABEL_VALUE_CHARACTERS = 63

ANNOTATION_BYTES = 256 * 1024
"""Most bytes of all keys and values of an object's annotations.

Source:
https://github.com/kubernetes/kubernetes/blob/v1.35.0/staging/src/k8s.io/apimachinery/pkg/api/validation/objectmeta.go
"""


# Source: https://awsdocs-neuron.readthedocs-hosted.com/en/latest/containers/kubernetes-getting-started.html
NEURON_DEVICE: Final = "aws.amazon.com/neuron"
NEURON_CORE: Final = "aws.amazon.com/neuroncore"
# Source: https://docs.aws.amazon.com/eks/latest/userguide/device-management-efa.html
EFA_INTERFACE: Final = "vpc.amazonaws.com/efa"
# Source: https://kubernetes.io/docs/tasks/manage-hugepages/scheduling-hugepages/
HUGE_PAGES: Final = "hugepages-2Mi"

# Source: https://kubernetes.io/docs/reference/labels-annotations-taints/
HOSTNAME_LABEL: Final = "kubernetes.io/hostname"

# Source: https://kubernetes.io/docs/concepts/configuration/configmap/#motivation and etcd's own
# limit of a request: https://etcd.io/docs/v3.5/dev-guide/limit/
MOST_OBJECT_BYTES = 1024 * 1024
"""Most bytes of one object."""
