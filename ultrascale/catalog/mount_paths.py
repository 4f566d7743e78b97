"""Folders of a container that a volume may not replace."""

from collections.abc import Mapping
from types import MappingProxyType

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
