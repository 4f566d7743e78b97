"""Process groups for tensors of the host, and the connections of the groups' workers."""

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import cast

import torch.distributed as dist


def connect_on_demand() -> None:
    """Let gloo connect two workers only when the first message between them is sent.

    Otherwise each new group connects every worker with every other worker. Source:
    https://github.com/pytorch/pytorch/blob/v2.13.0/torch/csrc/distributed/c10d/ProcessGroupGloo.cpp
    """
    os.environ.setdefault("TORCH_GLOO_LAZY_INIT", "1")


def host_group(timeout: timedelta, ranks: Sequence[int] | None = None) -> dist.ProcessGroup:
    """Return a new process group for tensors of the host, of all workers or only of ``ranks``."""
    members = None if ranks is None else list(ranks)
    # torch's annotation covers workers outside of the group, which never use it.
    return cast(dist.ProcessGroup, dist.new_group(members, timeout=timeout, backend="gloo"))


def under_torchrun() -> bool:
    """Return whether torchrun, or a launcher with the same variables, started this process."""
    return "RANK" in os.environ
