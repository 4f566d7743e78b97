"""Settings of the kubelet: resources that a node reserves, and limits that programs inherit.

Sources:
    https://github.com/awslabs/amazon-eks-ami/blob/main/nodeadm/internal/kubelet/config.go
    https://karpenter.sh/v1.15/reference/settings/ (`VM_MEMORY_OVERHEAD_PERCENT`)
"""

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
