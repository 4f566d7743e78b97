"""Failures of workers, kept where they can be read after the pod is gone.

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
# Folder of failures. NCCL writes there too, at a timeout, unless the output is a bucket.
_TRACES = "flight-recorder"
# Bytes at which the kubelet cuts the message of a container.
_MESSAGE_BYTES = 4096
_TERMINATION_LOG = Path("/dev/termination-log")
# Most files a minute, and in all: thousands of workers may fail at once, and a job many times.
_FILES_A_MINUTE, _FILES = 32, 256
# A worker that cannot reach its output must end nevertheless, before torchrun kills it.
_PATIENCE_SECONDS = 20.0
# Time for a step or a checkpoint to end by itself although a worker has gone.
_GRACE_SECONDS = 30.0
# Errors that follow from another worker's failure. By name, as torch may have failed to import.
_FOLLOWING = frozenset({"DistNetworkError", "DistStoreError"})


class FailureLog:
    """Failures of this worker.

    Args:
        output: Directory or ``s3://bucket/prefix`` of the run; None writes no files.
        message: File whose text Kubernetes keeps.
        grace_seconds: Time that a worker has to end by itself when another one has gone.

    Attributes:
        output: As above; the program sets it once it knows its arguments.
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

        The interpreter would first wait for its threads, and the thread that writes a checkpoint
        may wait for a dead worker. The exit status is 2 after a mistake that no restart
        cures, else 1.
        """
        # torch.distributed puts a hook before this one that has replaced sys.stderr.
        output = sys.__stderr__
        mistake = error if isinstance(error, TrainingError) else full_disk(error)
        if mistake is None:
            traceback.print_exception(kind, error, trace, file=output)
        elif _first_of_node("told"):
            # All workers know a mistake of the run; only a node's workers know one of the node.
            print(mistake, file=output, flush=True)
        sys.stdout.flush()
        self.keep(error)
        # Another thread may be about to record the worker that has gone.
        self._keeping.acquire(timeout=_PATIENCE_SECONDS)
        if mistake is not None:
            # One worker alone may have a full disk; the next start looks at it with all of them.
            if mistake is error and not isinstance(error, OutsideError):
                note_mistake()
            _stop_agent()
            os._exit(2)
        os._exit(1)

    def lost(self, error: VoteLost) -> None:
        """Record the worker that has gone, and end this one unless it ends by itself.

        To be ``on_lost`` of the vote. A collective of a GPU would wait for the worker that has gone
        until its timeout, and then tell nobody which one it was.
        """
        with self._keeping:
            self._keep_loss(error)
        time.sleep(self._grace_seconds)
        self.leave(type(error), error, error.__traceback__)

    def keep(self, error: BaseException) -> None:
        """Keep the traceback of ``error``, or the lines of a mistake, of the pod's first failure.

        An error that follows from another worker's failure goes into the pod's message alone, and
        only until the worker that failed first reports. A worker that has gone may never report:
        the worker that noticed it records the loss.
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
        # A mistake that the first worker knows is a mistake of the run, and why the others left.
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
        """Print, on rank 0, a line for each failure that earlier starts of the run have kept.

        The pods of those starts may be gone, and their logs with them.
        """
        if self.output is None or os.environ.get("RANK", "0") != "0":
            return
        try:
            for line in new_failures(open_objects(self.output)):
                print(line, flush=True)
        except Exception as error:
            # The run may go on; if the output is lost, its checkpoints raise the error.
            _log.warning("failures of earlier starts cannot be read: %s", error)

    def keep_stacks(self) -> None:
        """Keep the stacks of all threads of this worker, as the others wait for it."""
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
        """Do work on the output; its errors must not hide the first failure."""
        if (output := self.output) is None:
            return

        def attempt() -> None:
            with suppress(Exception):
                work(open_objects(output))

        working = Thread(target=attempt, daemon=True)
        working.start()
        working.join(_PATIENCE_SECONDS)

    def _say(self, text: str, *, follows: bool) -> None:
        """Write the container's message, unless this start has written a better one."""
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
    # Every node may know of a mistake before the first worker writes it down.
    if written >= _FILES_A_MINUTE and kind != "mistake":
        return
    second = time.strftime("%S", time.gmtime())
    rank = os.environ.get("RANK", "0")
    records.put(f"{FOLDER}/{minute}{second}-{kind}-rank-{rank}.txt", text.encode())
    for name in names[: -_FILES + 1]:
        records.delete(name)


def _cut(text: bytes) -> bytes:
    """Return the first line and as much of the end as Kubernetes keeps."""
    if len(text) <= _MESSAGE_BYTES:
        return text
    heading = text.partition(b"\n")[0] + b"\n[...]\n"
    return heading + text[len(heading) - _MESSAGE_BYTES :]


def _first_of_node(what: str) -> bool:
    """Return whether this worker is the first of those that torchrun started together here."""
    report = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if not report:
        return True
    try:
        # A directory that all workers share which torchrun started together here.
        Path(report).parents[1].joinpath(what).mkdir()
    except FileExistsError:
        return False
    except OSError:
        return True
    return True


def _stop_agent() -> None:
    """Stop the torchrun of this node, which would start all workers again, to the same end."""
    # Once, as a second signal would interrupt the handling of the first.
    if os.environ.get("TORCHELASTIC_ERROR_FILE") and _first_of_node("stopped"):
        os.kill(os.getppid(), signal.SIGTERM)
