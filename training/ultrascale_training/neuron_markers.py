"""Graphs in a shared cache of the Neuron compiler: markers of them, and their summary.

The cache itself cannot say whether it is complete. So each node that has compiled its graphs
writes a marker into it: ``precompiled/<arguments>/<run>/<node>.json``.
"""

import hashlib
import json
import os
import re
import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ultrascale_training.errors import TrainingError

_FOLDER = "precompiled"
# Arguments that change a run's length or output, but no graph.
_NO_GRAPH = frozenset(
    {
        *("steps_this_run", "max_steps", "output_dir", "log_every"),
        *("checkpoint_every", "keep", "save_async", "no_save_async", "resume"),
        # Arguments of the AWS BERT tutorial's script.
        *("resume_ckpt", "resume_step", "shards_per_ckpt", "num_ckpts_to_keep", "minimal_ckpt"),
    }
)
_TORCHRUN_SWITCHES = frozenset({"standalone", "no_python", "run_path"})
# The compiler's flags are part of a graph's name in the cache, except for these flags.
# Source: https://awsdocs-neuron.readthedocs-hosted.com/en/latest/frameworks/torch/torch-neuronx/programming-guide/training/pytorch-neuron-programming-guide.html
_NO_COMPILER_FLAG = ("--retry_failed_compilation", "--cache_dir", "--log_level", "--verbose")


@dataclass(frozen=True, kw_only=True)
class Run:
    """Facts about a torchrun command that determine its graphs."""

    nodes: int  # Nodes that run it, at most
    id: str  # Its rendezvous id; empty if it names none
    # Script, arguments and compiler flags that graphs depend on, in a fixed order
    arguments: tuple[str, ...]

    @property
    def fingerprint(self) -> str:
        """Fingerprint that runs with the same graphs share."""
        return hashlib.sha256("\0".join(self.arguments).encode()).hexdigest()[:16]


@dataclass(frozen=True, kw_only=True)
class Marker:
    """Proof that a node has compiled its graphs without a failure."""

    node: str  # Its host name
    nodes: int  # Nodes of the run
    total: int  # Graphs that it compiled. Nodes of a run share the work, so it may be none
    arguments: tuple[str, ...]  # Arguments of the run, as in `Run`
    versions: Mapping[str, str]  # Versions of the compiler's packages
    date: str  # Time of the compilation, in UTC


def read_command(command: Sequence[str], environment: Mapping[str, str]) -> Run:
    """Return the facts about ``command``, a command line of torchrun.

    Raises:
        TrainingError: The command is no torchrun command.
    """
    if not command or Path(command[0]).name != "torchrun":
        got = shlex.join(command)
        raise TrainingError(f"command: must be torchrun and its arguments, got {got!r}")
    options: dict[str, str] = {}
    words = list(command[1:])
    script: list[str] = []
    while words and not script:
        word = words.pop(0)
        name, _, value = word.lstrip("-").partition("=")
        name = name.replace("-", "_")
        if word in ("-m", "--module"):
            script = words[:1]
            words = words[1:]
        elif not word.startswith("-"):
            script = [word]
        elif "=" in word or name in _TORCHRUN_SWITCHES:
            options[name] = value
        else:
            options[name] = words.pop(0) if words else ""
    if not script:
        raise TrainingError(f"command: names no script, got {shlex.join(command)!r}")
    nodes = options.get("nnodes", "1").rpartition(":")[2]
    if not nodes.isdigit():
        raise TrainingError(f"--nnodes: must be a number or a range, got {options['nnodes']!r}")
    arguments = (*script, *_script_arguments(words), *_compiler_flags(environment))
    return Run(nodes=int(nodes), id=options.get("rdzv_id", ""), arguments=arguments)


def _script_arguments(words: Sequence[str]) -> Iterator[str]:
    """Yield the arguments that determine graphs, each flag with its last value."""
    flags: dict[str, list[str]] = {}
    values = flags.setdefault("", [])
    for word in words:
        if re.match(r"--[A-Za-z]", word):
            name, is_joined, value = word[2:].partition("=")
            values = flags[name.replace("-", "_")] = [value] if is_joined else []
        else:
            values.append(word)
    for name in sorted(flags.keys() - _NO_GRAPH):
        yield " ".join([f"--{name}" if name else "", *flags[name]]).strip()


def _compiler_flags(environment: Mapping[str, str]) -> Iterator[str]:
    flags = [
        word
        for word in shlex.split(environment.get("NEURON_CC_FLAGS", ""))
        if not word.startswith(_NO_COMPILER_FLAG)
    ]
    if flags:
        yield f"NEURON_CC_FLAGS={shlex.join(flags)}"


def write(cache: Path, run: Run, marker: Marker) -> Path:
    """Write ``marker`` into ``cache`` in one step, and return its path."""
    path = _path(cache, run, marker.node)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".part", delete=False) as file:
        json.dump(asdict(marker), file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    # Training may run as a user other than the compilation's.
    Path(file.name).chmod(0o644)
    Path(file.name).replace(path)
    return path


def remove(cache: Path, run: Run, node: str) -> None:
    """Remove the marker that an earlier attempt of ``run`` has left for ``node``."""
    _path(cache, run, node).unlink(missing_ok=True)


def _path(cache: Path, run: Run, node: str) -> Path:
    name = re.sub(r"[^A-Za-z0-9._-]", "_", run.id) or "none"
    return cache / _FOLDER / run.fingerprint / name / f"{node}.json"


def compiled_graphs(cache: Path) -> int:
    """Return the number of compiled graphs in ``cache``.

    A failed graph has a ``model.neff`` too, of a few bytes, and a ``model.log`` with the compiler's
    error.
    """
    graphs = cache.glob("neuronxcc-*/MODULE_*/model.neff")
    return sum(not graph.with_name("model.log").exists() for graph in graphs)


def whats_missing(cache: Path, run: Run) -> str | None:
    """Return why ``cache`` may lack graphs of ``run``; None if it holds all of them.

    The markers of all nodes of a run are needed: a node skips the graphs that another node
    compiles, and does not learn whether they succeed.
    """
    if not compiled_graphs(cache):
        return f"{cache} holds no compiled graph"
    same = [_markers(each) for each in sorted((cache / _FOLDER / run.fingerprint).glob("*"))]
    if any(markers and len(markers) >= markers[0].nodes for markers in same):
        return None
    if most := max(same, key=len, default=[]):
        done = ", ".join(marker.node for marker in most)
        return f"of {most[0].nodes} nodes that compiled only {len(most)} succeeded: {done}"
    others = [marker for each in (cache / _FOLDER).glob("*/*") for marker in _markers(each)]
    if not others:
        return f"nobody finished compiling the graphs in {cache}"
    last = max(others, key=lambda marker: marker.date)
    return f"the graphs in {cache} are of other arguments: {_difference(last, run)}"


def _markers(folder: Path) -> list[Marker]:
    found: list[Marker] = []
    for path in sorted(folder.glob("*.json")):
        said = json.loads(path.read_text())
        found.append(Marker(**said | {"arguments": tuple(said["arguments"])}))
    return found


def _difference(compiled: Marker, run: Run) -> str:
    then = [word for word in compiled.arguments if word not in run.arguments]
    now = [word for word in run.arguments if word not in compiled.arguments]
    return f"compiled with {'; '.join(then) or 'fewer'}, now {'; '.join(now) or 'fewer'}"


# --- Summary that ``neuron_parallel_compile`` prints of its compiled graphs -----------------------
# The exit status says less: it is the number of failed graphs, of which the shell keeps the last
# 8 bits, and it is 0 if workers died while they compiled.
#
# Source:
# https://awsdocs-neuron.readthedocs-hosted.com/en/latest/frameworks/torch/torch-neuronx/api-reference-guide/training/pytorch-neuron-parallel-compile.html


_TOTAL = "graphs"
_SUCCEEDED = "successful compilations"
_FAILED = "failed compilations"
_COUNT = re.compile(rf"Total ({_TOTAL}|{_SUCCEEDED}|{_FAILED})\s*:\s*(\d+)\s*$", re.IGNORECASE)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_GRAPH = re.compile(r"MODULE_[0-9A-Za-z]+(?:\+[0-9A-Za-z]+)?")
_REPORT_KEY = re.compile(r'^\s*"(.+)": \{\s*$')
_REPORT_FAILURE = re.compile(r'^\s*"status": false')
_NOTHING_LEFT = "No todo hlos found"
# Lines of errors after which the program continues, with the reason why they matter.
_TROUBLES = {
    "There was an error in the training script": "the script failed, so not all graphs are known",
    "got exception:": "a process of the compiler died, and its graphs are in no count",
    "Got a cached failed neff": "graphs that failed before were not tried again",
}
_GRAPH_TROUBLES = ("Failed compilation with", "Got a cached failed neff")


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Counts at the end of the program's output."""

    total: int  # Graphs that this node compiled, or tried to
    succeeded: int  # Graphs that it compiled
    failed: int  # Graphs that it did not compile


class Output:
    """Parser of the output of ``neuron_parallel_compile``, as it comes.

    Attributes:
        summary: The last summary in the output; None without any.
        nothing_left: Whether the program reported that all graphs were compiled before.
        troubles: Troubles that the program reported, without repetition.
        failed_graphs: Names of failed graphs, as far as the program printed them.
    """

    def __init__(self) -> None:
        self.summary: Summary | None = None
        self.nothing_left = False
        self.troubles: list[str] = []
        self.failed_graphs: list[str] = []
        self._rest = b""
        self._counts: dict[str, int] = {}
        self._reported: str | None = None

    def feed(self, data: bytes) -> None:
        """Parse the next bytes; a line may continue in the next call."""
        *lines, self._rest = re.split(rb"[\r\n]", self._rest + data)
        for line in lines:
            self._line(_COLOUR.sub("", line.decode(errors="replace")))

    def end(self) -> None:
        """Parse a last line that has no line end."""
        self.feed(b"\n")

    def _line(self, line: str) -> None:
        if count := _COUNT.search(line):
            self._count(count[1].lower(), int(count[2]))
        elif key := _REPORT_KEY.match(line):
            self._reported = key[1]
        elif _REPORT_FAILURE.match(line) and self._reported is not None:
            self._fail(self._reported)
        elif _NOTHING_LEFT in line:
            self.nothing_left = True
        else:
            self._trouble(line)

    def _trouble(self, line: str) -> None:
        if any(sign in line for sign in _GRAPH_TROUBLES):
            self._fail(line)
        for sign, trouble in _TROUBLES.items():
            if sign in line and trouble not in self.troubles:
                self.troubles.append(trouble)

    def _count(self, kind: str, number: int) -> None:
        if kind == _TOTAL:
            self._counts = {}
        self._counts[kind] = number
        if len(self._counts) == 3:
            self.summary = Summary(
                total=self._counts[_TOTAL],
                succeeded=self._counts[_SUCCEEDED],
                failed=self._counts[_FAILED],
            )

    def _fail(self, text: str) -> None:
        for name in _GRAPH.findall(text):
            if name not in self.failed_graphs:
                self.failed_graphs.append(name)


def mistakes(output: Output, *, status: int) -> list[str]:
    """Return the mistakes of a run of ``neuron_parallel_compile``; empty if it succeeded.

    Args:
        output: Its whole output.
        status: Its exit code; negative for the signal that ended it.
    """
    found = list(output.troubles)
    summary = output.summary
    if summary is None:
        if not output.nothing_left:
            found.append("it printed no summary of its compilations")
    elif summary.failed:
        found.append(f"{summary.failed} of {summary.total} graphs failed")
    elif summary.succeeded != summary.total:
        found.append(f"only {summary.succeeded} of {summary.total} graphs were compiled")
    if status:
        found.append(f"signal {-status} ended it" if status < 0 else f"it exited with {status}")
    # A failed graph may have succeeded at the compiler's next attempt.
    if found and output.failed_graphs:
        found.append(f"failed: {', '.join(output.failed_graphs)}")
    return found
