"""Bounds of whole numbers, named by the field that takes the number.

Sources:
    https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/job-v1/ (int32)
    https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/ (int64)
    https://github.com/volcano-sh/volcano/blob/v1.15.1/config/crd/volcano/bases/batch.volcano.sh_jobs.yaml
    https://github.com/kubeflow/trainer/blob/v1.8.1/manifests/base/crds/kubeflow.org_pytorchjobs.yaml
    https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateFileSystem.html
"""

from ultrascale.catalog.kubernetes import NODES_PER_CLUSTER

INT32 = 2**31 - 1
INT64 = 2**63 - 1

REPLICAS = NODES_PER_CLUSTER
"""Pods of a job or service: one on each node of the largest cluster. The fields are int32."""

RESTARTS = INT32 // REPLICAS - 1
"""Restarts of a pod or a job.

Volcano adds the first run to an int32; a PyTorchJob counts the restarts of all its pods together.
"""

TTL_SECONDS = INT32
"""`ttlSecondsAfterFinished` of a job, an int32."""

GRACE_SECONDS = INT32
"""`terminationGracePeriodSeconds` of a pod: an int64, which the kubelet multiplies by 10^9."""

STARTUP_SECONDS = 7 * 24 * 3600
"""Time within which a service has to start, in seconds: `progressDeadlineSeconds` is an int32.

A week, our own choice, is longer than any model takes to load.
"""

PROCESSES = 65_536
"""Processes that torchrun starts in a pod: each takes a port of the node."""

DEADLINE_HOURS = 365 * 24
"""Wall-clock time of a job, in hours: a year, our own choice; the field is an int64."""

LUSTRE_GIB = INT32
"""`StorageCapacity` of a file system, an int32."""

CONTROLLER_VCPUS = 1_920
CONTROLLER_GIB = 32_768
"""vCPUs, and GiB of memory, of a controller: more than any instance of EC2 has.

Source: https://docs.aws.amazon.com/ec2/latest/instancetypes/mo.html (u7inh-32tb, 1,920 vCPUs)
"""

ADDRESS_UNITS = INT64
"""Network Address Usage units: a quota, which Service Quotas holds as a double."""

PODS = 100_000_000
"""Pods of a cluster: a thousand on each of the most nodes."""
DATABASE_GB = 1_000
"""GB of a control plane's database: a larger number is a typing error."""
NODE_HOURS = 1_000_000_000
"""Node-hours of the largest cluster in a year: our own choice."""
MODEL_WIDTH = 100_000_000
"""Layers, heads, widths and tokens of a model: above any published model, our own choice."""
MODEL_GB = 1_000_000
"""GB of a model's weights, and GB/s at which they are read: our own choice."""
