"""The device neuron-xla against a stand-in of torch-xla that computes on the CPU.

It shows what the program asks of torch-xla and when, and that its own exchange of gradients is
right. It does not show that a NeuronCore computes the same.
"""

# Checked where torch is installed and where it is not.
# pyright: reportMissingImports=false, reportPrivateImportUsage=false

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.training_job import (
    ENVIRONMENT,
    Flags,
    curve,
    named,
    run,
    start_worker,
    start_workers,
)

pytestmark = pytest.mark.training


@contextmanager
def one_process() -> Generator[Any]:
    import torch.distributed as dist

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        yield dist.group.WORLD
    finally:
        dist.destroy_process_group()


STAND_IN = {
    "__init__.py": """
import json, os, pathlib, torch
told = pathlib.Path(os.environ["TOLD"] + os.environ["RANK"])
syncs = 0
names = ("NEURON_CC_FLAGS", "NEURON_RT_ROOT_COMM_ID", "NEURON_RT_STOCHASTIC_ROUNDING_EN")
told.write_text(json.dumps({name: os.environ.get(name) for name in names}))
def device():
    return torch.device("cpu")
def sync():
    global syncs
    syncs += 1
""",
    "core/__init__.py": "",
    "core/xla_model.py": """
import torch, torch.distributed as dist, torch_xla
def all_reduce_bucketized_gradients(gradients, scale, groups, pin_layout, bucket_cap_mb):
    assert scale == 1 and groups is None and bucket_cap_mb > 0
    for tensor in gradients:
        dist.all_reduce(tensor)
def set_rng_state(seed, device):
    assert torch_xla.syncs > 0, "the state of the optimizer would be part of this graph"
    torch.manual_seed(seed)
""",
    "distributed/__init__.py": "",
    "distributed/xla_backend.py": """
import torch.distributed as dist
def create(store, rank, size, timeout):
    return dist.ProcessGroupGloo(store, rank, size, timeout)
dist.Backend.register_backend("xla", create, devices=["cpu"])
""",
}


def test_gradients_of_neuron_cores_add_up_to_those_of_the_global_batch(tmp_path: Path) -> None:
    for name, text in STAND_IN.items():
        path = tmp_path / "stand-in" / "torch_xla" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    data = tmp_path / "data"
    small = ("--documents", 20, "--shards", 1, "--seq-len", 32, "--max-pred-len", 5)
    run("prepare_data", "--synthetic", "--output-dir", data, *small, folder=tmp_path)
    flags = Flags(data=data, steps=8)
    output = tmp_path / "output"
    workers = start_workers(
        flags.of(output, "--device", "neuron-xla"),
        [tmp_path, tmp_path],
        PYTHONPATH=f"{ENVIRONMENT['PYTHONPATH']}:{tmp_path / 'stand-in'}",
        TOLD=str(tmp_path / "told"),
        NEURON_CC_FLAGS="--log_level=INFO",
    )
    alone = tmp_path / "alone"
    alone.mkdir()

    for worker in (*workers, start_worker(flags.of(alone), alone)):
        status, said = worker.outcome()
        assert status == 0, said
    assert curve(output) == pytest.approx(curve(alone), rel=1e-6)
    assert [each["step"] for each in named(output, "checkpoint")] == [8]
    told = json.loads((tmp_path / "told0").read_text())
    assert told == {
        "NEURON_CC_FLAGS": "--log_level=INFO --model-type=transformer",
        "NEURON_RT_ROOT_COMM_ID": "127.0.0.1:62182",
        "NEURON_RT_STOCHASTIC_ROUNDING_EN": None,
    }


def test_resuming_asks_a_neuron_core_for_nothing_that_it_would_have_to_compile(
    tmp_path: Path,
) -> None:
    dcp = pytest.importorskip("torch.distributed.checkpoint")
    import torch

    class OnNeuronCore(torch.Tensor):
        device = property(lambda _: torch.device("xla"))  # pyright: ignore

        def cpu(self, *_: object, **__: object) -> torch.Tensor:
            raise AssertionError("a graph for each shape, which no precompile job has met")

    from ultrascale_training.checkpoints import load, newest_sound, open_store

    weight = torch.zeros(3).as_subclass(OnNeuronCore)
    store = open_store(tmp_path, keep=1)

    with one_process() as group:
        writer = store.writer(1, attempt="a", about={})
        dcp.save({"weight": torch.arange(3.0)}, storage_writer=writer, process_group=group)
        written = newest_sound(store, group)
        assert written is not None
        load(written, {"weight": weight}, group=group)

    assert weight.as_subclass(torch.Tensor).tolist() == [0.0, 1.0, 2.0]


def test_missing_torch_xla_is_told_with_the_image_that_has_it(tmp_path: Path) -> None:
    flags = Flags(data=tmp_path, steps=8).of(tmp_path, "--device", "neuron-xla")

    (worker,) = start_workers(flags, [tmp_path])

    status, said = worker.outcome()
    assert status == 2
    assert "torch-xla is not installed" in said
    assert said.rstrip().endswith("use the Neuron image")
