"""The compiler's summary is found wherever it stands, and its numbers are taken exactly."""

import pytest

from tests.support.neuron_compiler import (
    CACHED_FAILURE,
    GRAPHS,
    LOST_WORKER,
    SCRIPT_ERROR,
    summary,
)
from ultrascale_training.neuron_markers import Output, mistakes


@pytest.mark.parametrize(
    ("prints", "status", "says"),
    [
        (summary(6, 5, 1), 1, "1 of 6 graphs failed"),
        # Its exit code is the number of failures, of which 8 bits are left.
        (summary(600, 344, 256), 0, "256 of 600 graphs failed"),
        (summary(6, 4, 0), 0, "only 4 of 6 graphs were compiled"),
        ("Compiler status PASS\n", 0, "it printed no summary"),
        ("Traceback (most recent call last):\n", 1, "it exited with 1"),
        ("", -9, "signal 9 ended it"),
        (SCRIPT_ERROR, 1, "the script failed"),
        (SCRIPT_ERROR + summary(6, 6, 0), 0, "the script failed"),
        (LOST_WORKER + summary(4, 4, 0), 0, "a process of the compiler died"),
        (CACHED_FAILURE + summary(5, 5, 0), 0, f"not tried again; failed: {GRAPHS[0]}"),
        (summary(6, 6, 0), 3, "it exited with 3"),
    ],
)
def test_anything_less_than_all_graphs_is_a_failure(prints: str, status: int, says: str) -> None:
    output = Output()

    output.feed(prints.encode())
    output.end()

    assert says in "; ".join(mistakes(output, status=status))


@pytest.mark.parametrize(
    "prefix",
    ["", "[rank0]: ", "....", "\x1b[32mINFO\x1b[0m ||PARALLEL_COMPILE||: ", "100%|###|\r"],
)
def test_a_summary_is_found_behind_any_prefix(prefix: str) -> None:
    output = Output()

    for byte in summary(26, 25, 1, prefix=prefix).encode():
        output.feed(bytes([byte]))
    output.end()

    assert mistakes(output, status=0) == ["1 of 26 graphs failed"]


def test_the_last_summary_counts() -> None:
    output = Output()

    output.feed((summary(6, 5, 1) + summary(6, 6, 0)).encode())

    assert mistakes(output, status=0) == []


def test_half_a_summary_is_none() -> None:
    output = Output()

    output.feed(summary(6, 6, 0).encode()[:-20])
    output.end()

    assert mistakes(output, status=0) == ["it printed no summary of its compilations"]


def test_a_graph_that_succeeded_at_a_second_try_is_no_failure() -> None:
    output = Output()
    output.feed(f"ERROR: Failed compilation with ['model.{GRAPHS[0]}.neff']\n".encode())
    output.feed(summary(6, 6, 0).encode())

    assert mistakes(output, status=0) == []
