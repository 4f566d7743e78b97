"""Runs that are killed or told to stop, at any instant: what they then compute, and what they keep.

Remaining losses are those of an undisturbed run: of one worker bit for bit.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
import torch.distributed as dist
import toys
import worlds

from ultrascale_training.checkpoints import newest_sound
from ultrascale_training.checkpoints.sealed import SealedStore
from ultrascale_training.process_groups import host_group

STEPS, EVERY = 30, 8
MISTAKE, STOPPED = 2, 75


def words_of(model: Path, data: Path, *more: str) -> Sequence[str]:
    return [
        *(f"--model_name_or_path={model}", f"--dataset_name={data}", f"--max_steps={STEPS}"),
        *("--learning_rate=1e-3", "--per_device_train_batch_size=2", "--logging_steps=1"),
        *(f"--save_steps={EVERY}", "--seed=3", *more),
    ]


KILL, TERM = signal.SIGKILL, signal.SIGTERM
# What a run survives, one after the other: the signal, the workers that get it, and when.
ENDS = {
    1: ((KILL, "all", "save"), (TERM, "all", "save"), (TERM, "all", "step"), (KILL, "all", "step")),
    2: (
        (KILL, "all", "save"),
        (TERM, "last", "step"),
        (KILL, "first", "step"),
        (TERM, "all", "save"),
    ),
    3: (
        (KILL, "last", "save"),
        (TERM, "all", "step"),
        (KILL, "all", "step"),
        (TERM, "last", "save"),
    ),
}


@pytest.mark.parametrize("world", ENDS)
def test_a_run_that_is_stopped_and_killed_computes_what_an_undisturbed_one_does(
    model: Path, chats: Path, trained: Path, tmp_path: Path, world: int
) -> None:
    # Several workers share the model once by FSDP2, as on GPUs, and once by copies.
    words = words_of(model, chats, *(["--fsdp"] if world == 2 else []))
    whole, parts = tmp_path / "whole" if world > 1 else trained, tmp_path / "parts"
    if world > 1:
        worlds.run(world, "sft", words, whole)
    kept, repeated = 0, dict[str, int]()
    for number, (sent, who, when) in enumerate(ENDS[world]):
        slow = when == "save"
        running = worlds.start(world, "sft", words, parts, attempt=str(number), slow_saves=slow)
        running.wait_for(f"starts at step {kept} of {STEPS}")
        if slow:
            running.wait_until((parts / f"checkpoint-{(kept // EVERY + 1) * EVERY}").exists)
        else:
            running.wait_for(f"progress step={kept + 3}/")
        ranks = {"all": None, "first": [0], "last": [world - 1]}[who]
        running.signal(sent, ranks=ranks)
        statuses, text = running.wait(), running.text()
        # A model of its folder would be taken for a finished one.
        assert not (parts / "model.safetensors").exists()
        if sent == TERM:
            assert statuses == [STOPPED] * world
            kept = int(text.split("stopped and saved at step ")[1].split()[0])
            assert kept < STEPS
        else:
            assert 0 not in statuses
        reached = max(map(int, re.findall(r"progress step=(\d+)/", text)))
        repeated[f"{sent.name} to {who} in a {when}"] = max(0, reached - kept)
    worlds.run(world, "sft", words, parts, attempt="last")
    print(f"world {world}, steps repeated: {repeated}")
    assert {steps for end, steps in repeated.items() if "TERM" in end} == {0}
    expected, computed = worlds.figures(whole), worlds.figures(parts)
    assert computed == (expected if world == 1 else pytest.approx(expected, abs=1e-5))
    if world == 1:
        weights = [folder / "model.safetensors" for folder in (whole, parts)]
        assert weights[0].read_bytes() == weights[1].read_bytes()
    assert not list(parts.glob("*partial*")), "what killed runs leave is deleted"


def children(pid: int) -> Sequence[int]:
    return [*map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]


def test_torchrun_that_is_told_to_stop_or_killed_does_not_end_with_0_and_the_run_goes_on(
    model: Path, chats: Path, trained: Path, tmp_path: Path
) -> None:
    command = [
        *(sys.executable, "-m", "ultrascale_training.launch"),
        *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=1"),
        # One job, whose restarts do not wait for each other.
        *("--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", "--rdzv-id=toy"),
        *("-m", "ultrascale_training.posttrain", "sft", "--use_cpu", "--bf16=False"),
        *("--report_to=none", f"--output_dir={tmp_path / 'out'}", *words_of(model, chats)),
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for sent in (TERM, KILL):
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env=environment
        ) as running:
            assert running.stdout is not None
            ended = False
            for line in running.stdout:
                if line.startswith("progress step=") and not ended:
                    ended = True
                    if sent == TERM:
                        running.send_signal(sent)
                        continue
                    (launcher,) = children(running.pid)
                    # A container's processes end with its first.
                    others = children(launcher)
                    os.kill(launcher, sent)
                    running.wait()
                    for other in others:
                        with suppress(ProcessLookupError):
                            os.kill(other, sent)
            status = running.wait()
        assert (status == STOPPED) == (sent == TERM)
        assert status != 0
    worlds.run(1, "sft", words_of(model, chats), tmp_path / "out")
    assert worlds.figures(tmp_path / "out") == worlds.figures(trained)
    # A third start has nothing to train, and leaves the model as it is.
    done = (tmp_path / "out/model.safetensors").read_bytes()
    worlds.run(1, "sft", words_of(model, chats), tmp_path / "out", attempt="1")
    assert (tmp_path / "out/model.safetensors").read_bytes() == done


def test_a_second_run_does_not_write_where_one_trains(
    model: Path, chats: Path, tmp_path: Path
) -> None:
    words = words_of(model, chats, "--max_steps=100000")
    first = worlds.start(1, "sft", words, tmp_path / "out")
    first.wait_for("progress step=2/")
    second = worlds.start(1, "sft", words, tmp_path / "out", attempt="1", run_id="another")
    assert second.wait() == [MISTAKE]
    assert "writes to" in second.text()
    first.signal(signal.SIGTERM)
    assert first.wait() == [STOPPED]


@pytest.fixture(scope="module")
def trained(model: Path, chats: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the output of a run with three checkpoints."""
    output = tmp_path_factory.mktemp("trained") / "out"
    worlds.run(1, "sft", words_of(model, chats), output)
    return output


@pytest.fixture
def group() -> Iterator[dist.ProcessGroup]:
    """Return a group of this process alone."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("gloo", init_method=address, rank=0, world_size=1)
    yield host_group(timedelta(seconds=60))
    dist.destroy_process_group()


def test_a_checkpoint_with_one_flipped_bit_in_any_file_is_set_aside(
    trained: Path, group: dist.ProcessGroup, tmp_path: Path
) -> None:
    names = [path.name for path in (trained / f"checkpoint-{STEPS}").iterdir()]
    assert {"model.safetensors", "optimizer.pt", "trainer_state.json", "checkpoint.json"} <= {
        *names
    }
    for name in names:
        output = tmp_path / name
        shutil.copytree(trained, output)
        path = output / f"checkpoint-{STEPS}" / name
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
        sound = newest_sound(SealedStore(output, keep=3), group)
        assert sound is not None
        assert (sound.step, (output / f"bad-checkpoint-{STEPS}").is_dir()) == (24, True), name


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("--learning_rate=2e-3", "--learning_rate"),
        ("--dataset_name={other}", "--dataset_name"),
        ("--model_name_or_path={other}", "--model_name_or_path"),
    ],
)
def test_a_run_does_not_go_on_with_something_else(
    model: Path, chats: Path, trained: Path, tmp_path: Path, change: str, named: str
) -> None:
    output = tmp_path / "out"
    shutil.copytree(trained, output)
    other = toys.model(tmp_path / "other", seed=1)
    toys.write(other, toys.chats(2000, seed=1))
    words = words_of(model, chats, change.format(other=other))
    running = worlds.start(1, "sft", words, output)
    assert running.wait() == [MISTAKE]
    assert f"{named}: differs" in running.text()
    worlds.run(1, "sft", [*words, "--accept-new-data"], output, attempt="1")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--learning_rat=1"], "--learning_rat"),
        (["--save_total_limit=1"], "--save_total_limit"),
        (["--output_dir={model}"], "--output_dir"),
        (["--max_steps=many"], "--max_steps"),
        (["--model_name_or_path=/nowhere"], "no folder of a model"),
    ],
)
def test_options_that_trl_would_ignore_or_refuse_end_the_job(
    model: Path, chats: Path, tmp_path: Path, words: Sequence[str], named: str
) -> None:
    more = [word.format(model=model) for word in words]
    running = worlds.start(1, "sft", words_of(model, chats, *more), tmp_path / "out")
    assert running.wait() == [MISTAKE]
    assert named in running.text()


def test_checkpoints_of_another_program_are_left_alone(
    model: Path, chats: Path, trained: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    shutil.copytree(trained / "checkpoint-24", output / "checkpoint-24")
    (output / "checkpoint-24/checkpoint.json").unlink()
    running = worlds.start(1, "sft", words_of(model, chats), output)
    assert running.wait() == [MISTAKE]
    assert (output / "checkpoint-24/model.safetensors").exists()
