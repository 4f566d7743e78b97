"""Nodes with planted faults are found from the logs of their measurements alone."""

import math
from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.folders import ROOT
from ultrascale.parts.fabric.agent import judge
from ultrascale.parts.fabric.rounds import Pair, Search

LOG = (ROOT / "tests" / "data" / "fabric" / "p5.log").read_text().splitlines()
EFA = "h:1:1 [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa-direct (found 32 nics)"
TCP = "h:1:1 [0] NCCL INFO Using network Socket"
# Logs of a measurement in which a node has a fault: lines, and the program's exit status.
FAULTS: Mapping[str, tuple[list[str], int]] = {
    "an adapter of four is gone": ([EFA, *(line.replace("444.31", "333.10") for line in LOG)], 0),
    "TCP, at a speed above the floor": ([TCP, *LOG], 0),
    "values are wrong": (
        [EFA, *(line.replace("444.31      0", "444.31     12") for line in LOG)],
        0,
    ),
    "a GPU fails": ([EFA, "h:1:1 [3] NCCL WARN Cuda failure 'uncorrectable ECC error'"], 3),
    "it hangs": ([EFA], 124),
}


def log_of(pair: Pair, faults: Mapping[str, str]) -> tuple[list[str], int]:
    fault = next((faults[node] for node in pair if node in faults), None)
    return ([EFA, *LOG], 0) if fault is None else FAULTS[fault]


@settings(max_examples=60)
@given(data=st.data(), count=st.integers(3, 64))
def test_planted_faults_are_found_within_log2_n_plus_2_rounds(
    data: st.DataObject, count: int
) -> None:
    nodes = [f"ip-10-0-0-{number}" for number in range(count)]
    some = st.sets(st.sampled_from(nodes), max_size=count // 3)
    faults = {node: data.draw(st.sampled_from([*FAULTS])) for node in data.draw(some)}
    search = Search(nodes=nodes)

    while pairs := search.next_round():
        judged = {pair: judge(pair, *log_of(pair, faults), floor=353.7, efa=True) for pair in pairs}
        search.record({pair: not each.why for pair, each in judged.items()})

    assert search.bad == set(faults)
    assert search.rounds <= math.ceil(math.log2(count)) + 2
