"""Failures of workers, kept where somebody finds them after the pod is gone.

The traceback goes to standard error, to ``failures/`` in the output of the run, and into the
message that Kubernetes keeps of a container that ended. Source:
https://kubernetes.io/docs/tasks/debug/debug-application/determine-reason-pod-failure/
"""

import faulthandler
import fcntl
import logging
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread
from types import TracebackType

from ultrascale_training.errors import OutsideError, TrainingError, VoteLost, full_disk
from ultrascale_training.failure_lines import FOLDER, failure_line, fields_of, new_failures
from ultrascale_training.launch import note_mistake
from ultrascale_training.objects import Objects, open_objects

_log = logging.getLogger("ultrascale_training")
# Beside those that NCCL writes at a timeout, where the output is no bucket.
_TRACES = "flight-recorder"
# The kubelet cuts the message of a container there.
_MESSAGE_BYTES = 4096
_TERMINATION_LOG = Path("/dev/termination-log")
# Files of one minute, and in all: thousands of workers may fail at once, and a job many times.
_FILES_A_MINUTE, _FILES = 32, 256
# A worker that cannot reach its output must end all the same, before torchrun kills it.
_PATIENCE_SECONDS = 20.0
# For a step, or a checkpoint, that ends by itself although a worker has gone.
_GRACE_SECONDS = 30.0
# Errors that follow from another worker's failure. By name: torch may be what failed to import.
_FOLLOWING = frozenset({"DistNetworkError", "DistStoreError"})


class FailureLog:
    """Failures of this worker.

    Args:
        output: Directory or ``s3://bucket/prefix`` of the run; None keeps nothing there.
        message: File whose text Kubernetes keeps.
        grace_seconds: Time that a worker has to end by itself when another one has gone.

    Attributes:
        output: The same; the program sets it once it knows its arguments.
    """

    def __init__(
        self,
        output: str | None = None,
        *,
        message: Path = _TERMINATION_LOG,
        grace_seconds: float = _GRACE_SECONDS,
    ) -> None:
        self.output = output
        self._grace_seconds = grace_seconds
        self._message = message
        self._keeping = Lock()
        self._kept_losses: set[int] = set()

    def leave(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        """Report an exception that ends the worker, and end it; to be `sys.excepthook`.

        The interpreter would first wait for its threads, and one that writes a checkpoint may be
        waiting for a worker that is dead. The exit status is 2 after a mistake that no restart
        cures, else 1.
        """
        # torch.distributed puts a hook before this one that has replaced sys.stderr.
        output = sys.__stderr__
        mistake = error if isinstance(error, TrainingError) else full_disk(error)
        if mistake is None:
            traceback.print_exception(kind, error, trace, file=output)
        elif _first_of_node("told"):
            # Of a mistake of the run all workers have learnt; of one of a node, its workers alone.
            print(mistake, file=output, flush=True)
        sys.stdout.flush()
        self.keep(error)
        # Another thread may be about to keep which worker has gone.
        self._keeping.acquire(timeout=_PATIENCE_SECONDS)
        if mistake is not None:
            # One worker alone may have a full disk; the next start looks at it with all of them.
            if mistake is error and not isinstance(error, OutsideError):
                note_mistake()
            _stop_agent()
            os._exit(2)
        os._exit(1)

    def lost(self, error: VoteLost) -> None:
        """Keep which worker has gone, and end this one unless it does so by itself.

        To be ``on_lost`` of the vote. A collective of a GPU would wait for the worker that has gone
        until its timeout, and then tell nobody which one it was.
        """
        with self._keeping:
            self._keep_loss(error)
        time.sleep(self._grace_seconds)
        self.leave(type(error), error, error.__traceback__)

    def keep(self, error: BaseException) -> None:
        """Keep the traceback of ``error``, or the lines of a mistake, of the first to fail here.

        An error that follows from another worker's failure is kept in the pod's message alone, and
        only until the worker that failed first has said why. A worker that has gone may never say
        why: whoever has noticed it keeps that.
        """
        follows = isinstance(error, (ConnectionError, VoteLost))
        follows = follows or type(error).__name__ in _FOLLOWING
        mistake = isinstance(error, TrainingError)
        why = str(error) if mistake else "".join(traceback.format_exception_only(error))
        text = why if mistake else "".join(traceback.format_exception(error))
        text = f"{failure_line('follows' if follows else 'failed', why)}\n{text.rstrip()}\n"
        if os.environ.get("ULTRASCALE_POD"):
            with suppress(OSError):
                self._say(text, follows=follows)
        # One that the first worker knows is a mistake of the run, and what others left for.
        of_run = mistake and os.environ.get("RANK", "0") == "0"
        if not follows and (of_run or _first_of_node("failed")):
            self.write("mistake" if of_run else "error", text)
        if isinstance(error, VoteLost):
            self._keep_loss(error)

    def _keep_loss(self, lost: VoteLost) -> None:
        if lost.rank is None or lost.rank in self._kept_losses:
            return
        self._kept_losses.add(lost.rank)
        if _first_of_node(f"lost-{lost.rank}"):
            line = failure_line("failed", str(lost), rank=lost.rank, node=lost.node)
            self.write("lost", f"{line}\n")

    def tell_earlier(self) -> None:
        """Print a line for each failure that earlier starts of the run have kept, on rank 0.

        The pods of those starts may be gone, and with them what they wrote.
        """
        if self.output is None or os.environ.get("RANK", "0") != "0":
            return
        try:
            for line in new_failures(open_objects(self.output)):
                print(line, flush=True)
        except Exception as error:
            # The run may well go on; where it cannot, its checkpoints say so.
            _log.warning("failures of earlier starts cannot be read: %s", error)

    def keep_stacks(self) -> None:
        """Keep the stacks of all threads of this worker, which others wait for."""
        with tempfile.TemporaryFile() as file:
            faulthandler.dump_traceback(file, all_threads=True)
            file.seek(0)
            stacks = file.read().decode(errors="replace")
        self.write("stacks", f"{failure_line('hangs', 'others wait for this worker')}\n{stacks}")

    def keep_trace(self, trace: bytes) -> None:
        """Keep torch's record of this worker's collectives, which the next one replaces."""
        name = f"{_TRACES}/rank_{os.environ.get('RANK', '0')}"
        self._within_patience(lambda records: records.put(name, trace))

    def write(self, kind: str, text: str) -> None:
        """Write a file to ``failures/`` of the output, if it can be written in time."""
        self._within_patience(lambda records: _write(records, kind, text))

    def _within_patience(self, work: Callable[[Objects], None]) -> None:
        """Do work on the output; whatever goes wrong must not hide what went wrong before."""
        if (output := self.output) is None:
            return

        def attempt() -> None:
            with suppress(Exception):
                work(open_objects(output))

        working = Thread(target=attempt, daemon=True)
        working.start()
        working.join(_PATIENCE_SECONDS)

    def _say(self, text: str, *, follows: bool) -> None:
        """Write the message of the container, unless a better one of this start is there."""
        descriptor = os.open(self._message, os.O_RDWR)
        with os.fdopen(descriptor, "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            state, before = fields_of(file.readline().decode(errors="replace"))
            own, fields = fields_of(text.partition("\n")[0])
            of_this_start = before.get("restart") == fields["restart"]
            if of_this_start and (follows or state == own):
                return
            file.seek(0)
            file.truncate()
            file.write(_cut(text.encode()))


def _write(records: Objects, kind: str, text: str) -> None:
    minute = time.strftime("%Y%m%dT%H%M", time.gmtime())
    names = [*records.names(f"{FOLDER}/")]
    written = sum(name.startswith(f"{FOLDER}/{minute}") for name in names)
    # Each node may have learnt of a mistake before the first worker writes it down.
    if written >= _FILES_A_MINUTE and kind != "mistake":
        return
    second = time.strftime("%S", time.gmtime())
    rank = os.environ.get("RANK", "0")
    records.put(f"{FOLDER}/{minute}{second}-{kind}-rank-{rank}.txt", text.encode())
    for name in names[: -_FILES + 1]:
        records.delete(name)


def _cut(text: bytes) -> bytes:
    """Return the heading and as much of the end as Kubernetes keeps."""
    if len(text) <= _MESSAGE_BYTES:
        return text
    heading = text.partition(b"\n")[0] + b"\n[...]\n"
    return heading + text[len(heading) - _MESSAGE_BYTES :]


def _first_of_node(what: str) -> bool:
    """Return whether no other worker that torchrun started together with this one was here."""
    report = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if not report:
        return True
    try:
        # A directory of all that torchrun started together here.
        Path(report).parents[1].joinpath(what).mkdir()
    except FileExistsError:
        return False
    except OSError:
        return True
    return True


def _stop_agent() -> None:
    """Stop the torchrun of this node, which would start all workers again, to the same end."""
    # Once, as a second signal would interrupt what the first one does.
    if os.environ.get("TORCHELASTIC_ERROR_FILE") and _first_of_node("stopped"):
        os.kill(os.getppid(), signal.SIGTERM)
