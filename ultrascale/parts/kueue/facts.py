"""Kueue: its chart, and the limits of its objects.

Sources:
    https://github.com/kubernetes-sigs/kueue/releases/tag/v0.19.14
    https://github.com/kubernetes-sigs/kueue/tree/v0.19.2/apis/kueue/v1beta2
    https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/apis/config/v1beta2/configuration_types.go
"""

from ultrascale.catalog.versions import chart
from ultrascale.core.engine import QueueKinds

NAMESPACE = "kueue-system"
"""Namespace of its controller."""
QUEUE_KINDS = QueueKinds(
    group="kueue.x-k8s.io",
    version="v1beta2",
    queues="clusterqueues",
    local="localqueues",
    entries="workloads",
)
"""Kinds of its queues, and of a job's entry in them."""

# The chart and the CRDs of 0.19.2 were read.
VERSION = chart("kueue").version
"""Version of the chart, without a `v`."""

# Source: https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/charts/kueue/README.md
CHART = "oci://registry.k8s.io/kueue/charts/kueue"
# Its releases use the image's published name; the chart in the sources names a staging image.
# Source: https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/.github/workflows/release-utils.yml
IMAGE = "registry.k8s.io/kueue/kueue"
"""Image of the controller; its tag is the chart's version behind a `v`."""

# Source: https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/hack/make/test.mk
LATEST_KUBERNETES_VERSION = "1.36"
"""Latest Kubernetes minor with which it is tested."""

JOB_UID_LABEL = "kueue.x-k8s.io/job-uid"
"""Label of every Workload: the UID of its job.

Source: https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/pkg/controller/constants/constants.go
"""

GROUP_NAME_CHARACTERS = 63
GROUP_NAME_PREFIX = "leaderworkerset-"
GROUP_NAME_HASH_CHARACTERS = 5
"""Most characters of the label that names a replica's Workload on its pods, and the characters
around the replica's own name in it.

Sources:
    https://kueue.sigs.k8s.io/docs/tasks/run/leaderworkerset/#long-leaderworkerset-names
    https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/pkg/controller/jobframework/workload_names.go
"""

DEFAULT_LOCAL_QUEUE = "default"
"""Name of the LocalQueue for jobs of its namespace that name no queue.

Source: https://kueue.sigs.k8s.io/docs/tasks/manage/enforce_job_management/setup_default_local_queue/
"""

# Source, of all of these: https://github.com/kubernetes-sigs/kueue/tree/v0.19.2/apis/kueue/v1beta2
FLAVOR_LABELS = 8
"""Most labels, and as many tolerations, of a ResourceFlavor."""
FLAVORS_OF_A_GROUP = 64
"""Most flavors of a resource group of a ClusterQueue or Cohort."""
POD_SETS = 18
"""Most kinds of pods of a Workload."""

TOPOLOGY_SUFFIX = "-topology"
"""Our suffix, after the pool's name, for a flavor whose pods are placed by topology."""
