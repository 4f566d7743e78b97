"""Runs with the same graphs share a marker, and no others do."""

import pytest

from ultrascale_training.neuron_markers import read_command

SCRIPT = ("-m", "ultrascale_bert.pretrain")
ONE_NODE = ("torchrun", "--standalone", "--nproc-per-node=32", *SCRIPT, "--batch-size", "16")


@pytest.mark.parametrize(
    "same",
    [
        ["--batch_size=16", "--max_steps=28125", "--resume", "never"],
        ["--batch-size", "8", "--batch-size", "16", "--keep=3"],
        ["--steps-this-run=10", "--output-dir", "/data/o", "--batch-size", "16"],
    ],
)
def test_the_length_of_a_run_and_the_spelling_of_a_flag_change_no_graph(same: list[str]) -> None:
    options = ["--nnodes", "1:2", "--rdzv_conf", "join_timeout=9", "--rdzv-id", "a"]
    flags = {"NEURON_CC_FLAGS": "--retry_failed_compilation"}

    run = read_command(["torchrun", *options, *SCRIPT, *same], flags)

    assert run.fingerprint == read_command(ONE_NODE, {}).fingerprint
    assert (run.nodes, run.id) == (2, "a")


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        ([*ONE_NODE, "--bf16"], ""),
        ([*ONE_NODE, "--data-dir=/data/seqlen512"], ""),
        ([*ONE_NODE[:-1], "32"], ""),
        (["torchrun", "train.py", "--batch-size", "16"], ""),
        (list(ONE_NODE), "--model-type=transformer"),
    ],
)
def test_whatever_else_changes_may_change_a_graph(command: list[str], flags: str) -> None:
    other = read_command(command, {"NEURON_CC_FLAGS": flags})

    assert other.fingerprint != read_command(ONE_NODE, {}).fingerprint
