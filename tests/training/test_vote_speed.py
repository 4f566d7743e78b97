"""The program that measures the vote beside gloo."""

# Checked where torch is installed and where it is not.
# pyright: reportMissingImports=false

from pathlib import Path

import pytest

from tests.support.no_torch import NO_TORCH

pytest.importorskip("torch", reason=NO_TORCH)

from tests.support.training_job import run

pytestmark = pytest.mark.training


def test_a_worker_of_a_node_has_one_connection_where_gloo_has_one_to_each_other_worker(
    tmp_path: Path,
) -> None:
    nodes, workers = 2, 3
    small = ("--steps", 3, "--step-seconds", 0.001)

    run("vote_speed", "--nodes", nodes, "--workers", workers, *small, folder=tmp_path)

    voted, waited, gloo = (
        line for line in (tmp_path / "vote_speed.log").read_text().splitlines() if " ms " in line
    )
    # A node's first worker has its two others, the other node, and a socket that listens.
    told = "sockets: first worker 4, worker 1, first worker of a node 4"
    assert voted.endswith(told)
    assert waited.endswith(told)
    assert gloo.endswith("sockets: first worker 6, worker 6, first worker of a node 6")
