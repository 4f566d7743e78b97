"""Hanging steps: the workers that others wait for, and the report about them."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch.distributed as dist
from torch._C import _distributed_c10d as distributed_c10d

from ultrascale_training.failures import FailureLog, failure_line
from ultrascale_training.progress import Progress

_log = logging.getLogger("ultrascale_training")
_REASONS = {
    "behind": "has not come to the step of the others",
    "working": "is still computing or reading data, while others wait in a collective",
    "silent": "does not answer",
}


class Suspect(NamedTuple):
    """A worker that may be the cause of the wait."""

    rank: int
    node: str
    reason: str  # A key of `_REASONS`


@dataclass(frozen=True, kw_only=True)
class Hang:
    """A step that takes too long."""

    vote: int  # Number of the last vote that was complete, from 0; -1 before the first
    seconds: float  # Seconds since that vote
    suspects: Sequence[Suspect]  # Empty where each worker answers and waits in a collective

    def told(self) -> str:
        """Return the report of the hang, in lines for people."""
        lines = [self.told_of(suspect) for suspect in self.suspects]
        return "\n".join(lines) or (
            f"no step has ended for {self.seconds:.0f} s, and each worker answers: a collective of "
            "the devices hangs; NCCL's flight recorder tells which"
        )

    def told_of(self, suspect: Suspect) -> str:
        """Return the line about a suspect."""
        return (
            f"no step has ended for {self.seconds:.0f} s: worker {suspect.rank} on node "
            f"{suspect.node} {_REASONS[suspect.reason]}"
        )


def keep_state(failures: FailureLog, *, suspected: bool) -> None:
    """Store this worker's state while a step hangs, before a collective's timeout ends the worker.

    Every worker stores torch's record of its collectives for ``torchfrtrace``, which needs the
        records
    of all workers to name the missing worker. Source:
    https://docs.pytorch.org/tutorials/unstable/flight_recorder_tutorial.html

    Args:
        failures: Failure log of this worker.
        suspected: Whether other workers wait for this one: its stacks are stored too.
    """
    if suspected:
        failures.keep_stacks()
    # NCCL's collectives are in a separate record, not in torch's record of gloo's collectives.
    # Source: https://github.com/pytorch/pytorch/blob/v2.13.0/torch/csrc/distributed/c10d/FlightRecorder.cpp
    of_nccl = dist.is_initialized() and "nccl" in dist.get_backend_config()
    record = getattr(distributed_c10d, "_dump_nccl_trace" if of_nccl else "_dump_fr_trace", None)
    if record is not None:
        failures.keep_trace(record())


def report_hang(hang: Hang, failures: FailureLog, progress: Progress | None) -> None:
    """Report a hang to the log, to the metrics, and to the failure log.

    Args:
        hang: The hang that the first worker found.
        failures: Failure log, from which the next start and `ultrascale status` report the hang.
        progress: Progress of the run; None before its first report.
    """
    _log.error("%s", hang.told())
    if progress is not None:
        suspects = [suspect._asdict() for suspect in hang.suspects]
        progress.event("hang", vote=hang.vote, seconds=round(hang.seconds, 1), suspects=suspects)
    first = next(iter(hang.suspects), None)
    if first is None:
        head = failure_line("hangs", hang.told())
    else:
        head = failure_line("hangs", hang.told_of(first), rank=first.rank, node=first.node)
    failures.write("hang", f"{head}\n{hang.told()}\n")
