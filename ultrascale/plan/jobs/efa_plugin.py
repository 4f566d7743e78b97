"""End a pod whose image lets NCCL find no plugin for EFA: its traffic would go over TCP.

A pod runs this text before torchrun, by the Python of its image and without this package. It loads
the library as NCCL does, by the same names and the same search path.

Sources:
    https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html#nccl-net-plugin
    https://github.com/aws/aws-ofi-nccl/blob/master/include/nccl_ofi_log.h
"""

import ctypes
import os
import sys
from collections.abc import Iterator
from pathlib import Path

# Begins each line that the plugin logs; plugins of others, such as that of HPC-X, have it not.
_MARK = b"NET/OFI"


def names() -> Iterator[str]:
    """Yield the names of the library that NCCL tries."""
    if stated := os.environ.get("NCCL_NET_PLUGIN"):
        yield from (stated, f"libnccl-net-{stated}.so")
    yield from ("libnccl-net.so", "libnccl-net-ofi.so")


def is_there() -> bool:
    """Return whether NCCL finds aws-ofi-nccl."""
    for name in names():
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
    maps = Path("/proc/self/maps").read_text().splitlines()
    files = {Path(words[5]) for line in maps if len(words := line.split(maxsplit=5)) > 5}
    return any(_MARK in file.read_bytes() for file in files if "nccl" in file.name)


if __name__ == "__main__" and not is_there():
    print(
        "the image has no aws-ofi-nccl where NCCL looks for libnccl-net.so, so its traffic between "
        "nodes would go over TCP, many times slower, beside idle EFA interfaces: add it to the "
        "image, and its folder to LD_LIBRARY_PATH there; where TCP is meant, write "
        "resources: {efa: 0} in the job, and where another library uses EFA, "
        "env: {NCCL_NET_PLUGIN: ofi}",
        file=sys.stderr,
    )
    sys.exit(2)
