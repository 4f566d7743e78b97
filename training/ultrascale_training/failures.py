"""Failures of workers, stored so that they can be read after the pod is gone.

The traceback goes to standard error, to ``failures/`` in the output of the run, and into the
message that Kubernetes keeps of a container that ended. Source:
https://kubernetes.io/docs/tasks/debug/debug-application/determine-reason-pod-failure/
"""

import faulthandler
import fcntl
import json
import logging
import os
import re
import shlex
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread
from types import TracebackType

from ultrascale_training.errors import OutsideError, TrainingError, VoteLost, full_disk
from ultrascale_training.launch import note_mistake
from ultrascale_training.objects import Objects, open_objects

# --- Log lines on failures: the first line of each kept failure, and the report of the next start
# A line is in logfmt, such as ``failed at=2026-11-23T12:00:00Z node=ip-10-0-0-7 pod=llm-3 rank=24
# error="RuntimeError: …"``. `ultrascale status` reads the lines in the log of the first pod,
# because the failed pod may be gone.


FOLDER = "failures"
_KINDS = ("mistake", "hang", "error", "lost")
_TOLD = "failures.json"
_MOST_LINES = 8
# Thousands of workers may have failed; the first failures show the cause.
_MOST_READ = 64
_LONGEST = 500
_PLAIN = re.compile(r"[\w.:/-]+")


def failure_line(
    state: str, error: str, *, rank: int | None = None, node: str | None = None
) -> str:
    """Return a line about this worker's failure, or about a failure that it noticed of another.

    Args:
        state: First word of the line.
        error: Error; line breaks are removed, and a long text is cut.
        rank: Rank of the other worker.
        node: Node of the other worker.
    """
    environment = os.environ
    fields = {"at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
    if rank is None:
        fields["node"] = environment.get("ULTRASCALE_NODE", "")
        fields["pod"] = environment.get("ULTRASCALE_POD", "")
        fields["rank"] = environment.get("RANK", "0")
    else:
        fields |= {"node": node or "", "rank": str(rank)}
    fields["restart"] = environment.get("TORCHELASTIC_RESTART_COUNT", "0")
    text = " ".join(error.split())
    fields["error"] = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    return _line(state, fields)


def fields_of(line: str) -> tuple[str, Mapping[str, str]]:
    """Return the first word and the fields of a line; both empty if the line has another form."""
    try:
        state, *words = shlex.split(line)
    except ValueError:
        return "", {}
    pairs = (word.partition("=") for word in words)
    return state, {name: value for name, equals, value in pairs if equals}


def new_failures(records: Objects) -> Sequence[str]:
    """Return a line for each failure stored since the last call, causes first.

    Args:
        records: Output of the run, in which the last call is noted.
    """
    noted = records.get(_TOLD)
    last = str(json.loads(noted)["last"]) if noted else ""
    new = [name for name in records.names(f"{FOLDER}/") if name > last]
    if not new:
        return []
    records.put(_TOLD, json.dumps({"last": new[-1]}).encode())
    mistakes, hangs, errors, lost = (_kept_fields(records, new, kind) for kind in _KINDS)
    # After a mistake all workers leave, and only the first worker has the reason.
    if mistakes:
        return [_line("failed", fields) for fields in mistakes[:_MOST_LINES]]
    # A worker whose loss others noticed before they failed is the cause; it may have stored its
    # reason.
    gone = {fields["rank"] for fields in lost}
    told = {fields["rank"] for fields in errors}
    ordered = [
        *hangs,
        *(fields for fields in errors if fields["rank"] in gone),
        *(fields for fields in lost if fields["rank"] not in told),
        *(fields for fields in errors if fields["rank"] not in gone),
    ]
    unique = {(fields["rank"], fields["error"]): fields for fields in reversed(ordered)}
    return [_line("failed", fields) for fields in [*reversed(unique.values())][:_MOST_LINES]]


def _kept_fields(records: Objects, names: Sequence[str], kind: str) -> list[Mapping[str, str]]:
    """Return the fields of the first stored failures of a kind."""
    found: list[Mapping[str, str]] = []
    for name in [name for name in names if f"-{kind}-" in name][:_MOST_READ]:
        content = (records.get(name) or b"").decode(errors="replace")
        _, fields = fields_of(content.partition("\n")[0])
        if {"rank", "error"} <= fields.keys():
            found.append(fields)
    return found


def _line(state: str, fields: Mapping[str, str]) -> str:
    words = [f"{name}={_quoted_value(value)}" for name, value in fields.items() if value]
    return " ".join([state, *words])


def _quoted_value(value: str) -> str:
    if _PLAIN.fullmatch(value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


# --- Failures of workers, stored so that they can be read after the pod is gone -------------------


_log = logging.getLogger("ultrascale_training")
# Folder of stored failures. At a timeout NCCL writes there too, unless the output is a bucket.
_TRACES = "flight-recorder"
# Bytes at which the kubelet cuts a container's message.
_MESSAGE_BYTES = 4096
_TERMINATION_LOG = Path("/dev/termination-log")
# Most files a minute, and in total: thousands of workers may fail at once, and a job many times.
_FILES_A_MINUTE, _FILES = 32, 256
# A worker that cannot reach its output must still end before torchrun kills it.
_PATIENCE_SECONDS = 20.0
# Seconds in which a step or a checkpoint may end by itself after a worker has gone.
_GRACE_SECONDS = 30.0
# Errors that follow from another worker's failure; by name, as the import of torch may have failed.
_FOLLOWING = frozenset({"DistNetworkError", "DistStoreError"})


class FailureLog:
    """Log of this worker's failures.

    Args:
        output: Directory or ``s3://bucket/prefix`` of the run; None writes no files.
        message: File whose text Kubernetes keeps.
        grace_seconds: Time that this worker has to end by itself after another worker has gone.
    """

    def __init__(
        self,
        output: str | None = None,
        *,
        message: Path = _TERMINATION_LOG,
        grace_seconds: float = _GRACE_SECONDS,
    ) -> None:
        # Directory or bucket of the run; the program sets it once it knows its arguments
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
        # A hook that torch.distributed installs before this one may have replaced sys.stderr.
        output = sys.__stderr__
        mistake = error if isinstance(error, TrainingError) else full_disk(error)
        if mistake is None:
            traceback.print_exception(kind, error, trace, file=output)
        elif _first_of_node("told"):
            # All workers know a mistake of the run; only a node's workers know a mistake of the
            # node.
            print(mistake, file=output, flush=True)
        sys.stdout.flush()
        self.keep(error)
        # Another thread may be about to record the lost worker.
        self._keeping.acquire(timeout=_PATIENCE_SECONDS)
        if mistake is not None:
            # Only this worker may have a full disk; the next start checks the disks of all workers.
            if mistake is error and not isinstance(error, OutsideError):
                note_mistake()
            _stop_agent()
            os._exit(2)
        os._exit(1)

    def lost(self, error: VoteLost) -> None:
        """Record the lost worker, and end this worker unless it ends by itself.

        To be ``on_lost`` of the vote. A collective on GPUs would wait for the lost worker until its
        timeout, and then not say which worker it was.
        """
        with self._keeping:
            self._keep_loss(error)
        time.sleep(self._grace_seconds)
        self.leave(type(error), error, error.__traceback__)

    def keep(self, error: BaseException) -> None:
        """Store the traceback of ``error``, or the lines of a mistake, of the pod's first failure.

        An error that follows from another worker's failure only goes into the pod's message, until
        the worker that failed first reports. A lost worker may never report: the worker that
        noticed its end records the loss.
        """
        follows = isinstance(error, (ConnectionError, VoteLost))
        follows = follows or type(error).__name__ in _FOLLOWING
        mistake = isinstance(error, TrainingError)
        why = str(error) if mistake else "".join(traceback.format_exception_only(error))
        text = why if mistake else "".join(traceback.format_exception(error))
        text = f"{failure_line('follows' if follows else 'failed', why)}\n{text.rstrip()}\n"
        if os.environ.get("ULTRASCALE_POD"):
            with suppress(OSError):
                self._write_message(text, follows=follows)
        # A mistake that the first worker knows is a mistake of the run, and the reason why others
        # left.
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
        """Print, on rank 0, a line for each failure that earlier starts of the run have stored.

        The pods of those starts may be gone, and their logs with them.
        """
        if self.output is None or os.environ.get("RANK", "0") != "0":
            return
        try:
            for line in new_failures(open_objects(self.output)):
                print(line, flush=True)
        except Exception as error:
            # The run may continue; if the output is lost, its checkpoints will raise the error.
            _log.warning("failures of earlier starts cannot be read: %s", error)

    def keep_stacks(self) -> None:
        """Store the stacks of all threads of this worker, for which other workers wait."""
        with tempfile.TemporaryFile() as file:
            faulthandler.dump_traceback(file, all_threads=True)
            file.seek(0)
            stacks = file.read().decode(errors="replace")
        self.write("stacks", f"{failure_line('hangs', 'others wait for this worker')}\n{stacks}")

    def keep_trace(self, trace: bytes) -> None:
        """Store torch's record of this worker's collectives; the next record replaces it."""
        name = f"{_TRACES}/rank_{os.environ.get('RANK', '0')}"
        self._within_patience(lambda records: records.put(name, trace))

    def write(self, kind: str, text: str) -> None:
        """Write a file to ``failures/`` of the output, if that is possible in time."""
        self._within_patience(lambda records: _write(records, kind, text))

    def _within_patience(self, work: Callable[[Objects], None]) -> None:
        """Do work on the output; errors of the work must not hide the first failure."""
        if (output := self.output) is None:
            return

        def attempt() -> None:
            with suppress(Exception):
                work(open_objects(output))

        working = Thread(target=attempt, daemon=True)
        working.start()
        working.join(_PATIENCE_SECONDS)

    def _write_message(self, text: str, *, follows: bool) -> None:
        """Write the container's message, unless this start has already written a better one."""
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
            file.write(_cut_message(text.encode()))


def _write(records: Objects, kind: str, text: str) -> None:
    minute = time.strftime("%Y%m%dT%H%M", time.gmtime())
    names = [*records.names(f"{FOLDER}/")]
    written = sum(name.startswith(f"{FOLDER}/{minute}") for name in names)
    # Every node may know a mistake before the first worker has written it.
    if written >= _FILES_A_MINUTE and kind != "mistake":
        return
    second = time.strftime("%S", time.gmtime())
    rank = os.environ.get("RANK", "0")
    records.put(f"{FOLDER}/{minute}{second}-{kind}-rank-{rank}.txt", text.encode())
    for name in names[: -_FILES + 1]:
        records.delete(name)


def _cut_message(text: bytes) -> bytes:
    """Return the first line, and as much of the text's end as Kubernetes keeps."""
    if len(text) <= _MESSAGE_BYTES:
        return text
    heading = text.partition(b"\n")[0] + b"\n[...]\n"
    return heading + text[len(heading) - _MESSAGE_BYTES :]


def _first_of_node(what: str) -> bool:
    """Return whether this worker is the first of this node's torchrun to reach ``what``."""
    report = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if not report:
        return True
    try:
        # Directory that only the workers share which torchrun started together on this node.
        Path(report).parents[1].joinpath(what).mkdir()
    except FileExistsError:
        return False
    except OSError:
        return True
    return True


def _stop_agent() -> None:
    """Stop this node's torchrun: it would start all workers again, and they would fail again."""
    # Only once: a second signal would interrupt the handling of the first.
    if os.environ.get("TORCHELASTIC_ERROR_FILE") and _first_of_node("stopped"):
        os.kill(os.getppid(), signal.SIGTERM)
