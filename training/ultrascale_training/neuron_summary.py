"""Summary that ``neuron_parallel_compile`` prints of its compiled graphs.

The exit status says less: it is the number of failed graphs, of which the shell keeps the last
8 bits, and it is 0 if workers died while they compiled.

Source:
https://awsdocs-neuron.readthedocs-hosted.com/en/latest/frameworks/torch/torch-neuronx/api-reference-guide/training/pytorch-neuron-parallel-compile.html
"""

import re
from dataclasses import dataclass

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
    """Parser of the output of ``neuron_parallel_compile``, as it comes."""

    def __init__(self) -> None:
        self.summary: Summary | None = None  # The last summary in the output; None without any
        # Whether the program reported that all graphs were compiled before
        self.nothing_left = False
        self.troubles: list[str] = []  # Troubles that the program reported, without repetition
        # Names of failed graphs, as far as the program printed them
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
