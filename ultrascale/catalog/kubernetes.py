"""Kubernetes: bounds of its API and of clusters on EKS, of a kubelet, and of objects' fields.

Sources:
    https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/
    https://aws.amazon.com/blogs/containers/amazon-eks-enables-ultra-scale-ai-ml-workloads-with-support-for-100k-nodes-per-cluster/
"""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

from ultrascale.catalog.tables import Row, read_rows

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

Source: https://kubernetes.io/docs/reference/labels-annotations-taints/#batch-kubernetes-io-job-completion-index-annotation
"""

# Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set
LABEL_VALUE_CHARACTERS = 63

ANNOTATION_BYTES = 256 * 1024
"""Most bytes of all keys and values of an object's annotations.

Source: https://github.com/kubernetes/kubernetes/blob/v1.35.0/staging/src/k8s.io/apimachinery/pkg/api/validation/objectmeta.go
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
UNINITIALIZED_TAINT: Final = "node.cloudprovider.kubernetes.io/uninitialized"
STARTUP_TAINT_SUFFIX: Final = "/agent-not-ready"
"""End of the keys of taints that a new node has until AWS's storage drivers run there.

Source: https://github.com/kubernetes-sigs/aws-ebs-csi-driver/blob/master/docs/install.md#configure-node-startup-taint
"""

# Source: https://kubernetes.io/docs/concepts/configuration/configmap/#motivation and etcd's own
# limit of a request: https://etcd.io/docs/v3.5/dev-guide/limit/
MOST_OBJECT_BYTES = 1024 * 1024
"""Most bytes of one object."""


# --- Settings of the kubelet: resources that a node reserves, and limits that programs inherit ----
# Sources:
#     https://github.com/awslabs/amazon-eks-ami/blob/main/nodeadm/internal/kubelet/config.go
#     https://karpenter.sh/v1.15/reference/settings/ (`VM_MEMORY_OVERHEAD_PERCENT`)


# Reserved shares of the first core, the second, the third and fourth, and of each further core.
_CPU_SHARES = ((1, 0.06), (1, 0.01), (2, 0.005))
_CPU_SHARE_BEYOND = 0.0025
_RESERVED_MIB = 255
_RESERVED_MIB_PER_POD = 11
_EVICTION_MIB = 100
LEASE_RENEWAL_SECONDS = 10
LEASE_RENEWAL_SOURCE = "https://kubernetes.io/docs/concepts/architecture/nodes/#node-heartbeats"
# Source: MAX_ARG_STRLEN of https://man7.org/linux/man-pages/man2/execve.2.html
WORD_BYTES = 128 * 1024
"""Least bytes of an argument or variable with which a program no longer starts."""
LIST_BYTES = WORD_BYTES - 1024
"""Most bytes of a list in a variable: less than `WORD_BYTES` by room for the name."""
# Share of the memory stated by EC2 that Karpenter sets aside for the kernel and the hypervisor: a
# pod that requests more launches no node.
_UNSEEN_MEMORY_SHARE = 0.075


def allocatable_millicpu(vcpus: int) -> int:
    """Return the CPU, in thousandths, that a node with ``vcpus`` vCPUs gives its pods."""
    reserved, left = 0.0, vcpus
    for cores, share in _CPU_SHARES:
        taken = min(cores, left)
        reserved += taken * 1000 * share
        left -= taken
    return vcpus * 1000 - round(reserved + left * 1000 * _CPU_SHARE_BEYOND)


def allocatable_mib(memory_mib: int, *, max_pods: int, huge_pages_mib: int) -> int:
    """Return the memory, in MiB, that a node gives its pods in addition to huge pages.

    Args:
        memory_mib: Memory that EC2 states of the instance type.
        max_pods: Pods that the node may run.
        huge_pages_mib: Memory that the image sets aside as huge pages.
    """
    seen = int(memory_mib * (1 - _UNSEEN_MEMORY_SHARE))
    reserved = _RESERVED_MIB + _RESERVED_MIB_PER_POD * max_pods + _EVICTION_MIB
    return seen - reserved - huge_pages_mib


# --- Fields of Kubernetes objects that cannot change while the object exists ----------------------
# The API server refuses the whole `kubectl apply`, and CloudFormation rolls the deployment back.
#
# Sources:
#     https://github.com/kubernetes/kubernetes/tree/v1.36.0/pkg/apis: validation of updates
#     https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/
#     https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/
#     https://kubernetes.io/docs/concepts/configuration/configmap/#configmap-immutable
#     https://github.com/aws/karpenter-provider-aws/tree/v1.15.1/pkg/apis/crds: rules on ``oldSelf``
#     https://github.com/kubernetes-sigs/kueue/tree/v0.19.2/config/components/crd/bases
#     https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu


class Immutable(Row, frozen=True, kw_only=True):
    """A field that cannot change."""

    kind: str
    """Kind of the object; for a kind of an API group, followed by a dot and the group."""
    path: str
    """Path of the field, with `/` between the parts."""
    but: tuple[str, ...] = ()
    """Fields directly below `path` that may change nevertheless."""
    only_if: str = ""
    """Path of a field: if its value is `true`, `path` is immutable; empty if `path` always is."""
    if_set: str = ""
    """Path of a field: if it is present, `path` is immutable."""
    presence: bool = False
    """Whether the field's value may change, but the field may be neither added nor removed."""
    grows: bool = False
    """Whether the API server accepts a larger quantity."""


def lookup_immutable_fields(kind: str, api_version: str) -> tuple[Immutable, ...]:
    """Return the immutable fields of a kind; empty if no source states any.

    Args:
        kind: Kind of the object.
        api_version: Its ``apiVersion``: group and version, or the version alone.
    """
    group, slash, _ = api_version.partition("/")
    return _fields_by_kind().get(f"{kind}.{group}" if slash else kind, ())


@cache
def _fields_by_kind() -> Mapping[str, tuple[Immutable, ...]]:
    fields: dict[str, tuple[Immutable, ...]] = {}
    for row in read_rows("immutable_fields.csv", Immutable):
        fields[row.kind] = (*fields.get(row.kind, ()), row)
    return fields


# --- Folders of a container that a volume may not replace -----------------------------------------


WITH_ALL_WITHIN: Mapping[str, str] = MappingProxyType(
    {
        # Source: https://github.com/opencontainers/runc/blob/v1.3.0/libcontainer/rootfs_linux.go
        # (a mount inside is refused)
        "/proc": "the kernel's view of its processes",
        "/sys": "the kernel's view of its devices",
        # Source: https://github.com/opencontainers/runtime-spec/blob/v1.2.1/config-linux.md#default-devices
        "/dev": "devices, and the memory that processes share",
        # Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/controllers/job/plugins/svc/svc.go
        "/etc/volcano": "Volcano's list of hosts",
        # Sources: https://kubernetes.io/docs/tasks/configure-pod-container/configure-service-account/,
        # https://docs.aws.amazon.com/eks/latest/userguide/pod-id-how-it-works.html
        "/var/run/secrets": "the credentials of its service account",
        "/run/secrets": "the credentials of its service account",
    }
)
"""Folders of the kernel, the kubelet or Volcano with their content; no volume may be within."""

# Source: https://refspecs.linuxfoundation.org/FHS_3.0/fhs/index.html
_PROGRAMS = ("/", "/usr", "/usr/local", "/opt")
_OF_PROGRAMS = ("bin", "sbin", "lib", "lib64")
THEMSELVES: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(_PROGRAMS, "the programs of its image"),
        **{
            f"{above}/{each}": "the programs of its image"
            for above in ("", "/usr", "/usr/local")
            for each in _OF_PROGRAMS
        },
        # Folders in the images of `images/`: the libraries of EFA and of the Neuron runtime.
        "/opt/amazon": "the libraries of EFA",
        "/opt/aws": "the libraries of the Neuron runtime",
        # The kubelet mounts hosts, hostname and resolv.conf in it.
        # Source: https://github.com/kubernetes/kubernetes/blob/v1.36.0/pkg/kubelet/kubelet_pods.go
        "/etc": "the settings of its image, hosts and name servers",
        "/var": "files that programs keep",
        "/var/run": "files of programs that run",
        "/run": "files of programs that run",
        "/boot": "the kernel",
    }
)
"""Folders that programs need: no volume may be mounted over them.

A volume may be mounted within them.
"""


def holds(path: str) -> str | None:
    """Return the content of ``path`` that a volume must not hide; None if a volume may be mounted.

    Args:
        path: An absolute path without ``.`` and ``..``.
    """
    for folder, contents in WITH_ALL_WITHIN.items():
        if path == folder or path.startswith(f"{folder}/"):
            return contents
    return THEMSELVES.get(path)
