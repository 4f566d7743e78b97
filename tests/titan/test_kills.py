"""A soak: TorchTitan runs of one to six ranks, FSDP2 with and without TP, killed at random.

``SOAK=10 make titan`` starts one ten times; ``FAULT_SEED`` repeats the instants.
"""

import os
import random
import shutil
import signal
from pathlib import Path

import pytest
import worlds
from toys import events, losses

SOAK = int(os.environ.get("SOAK", "0"))
# As where runs only go on with other numbers of ranks: sums have another order.
TOLERANCE = 1e-4
EVERY = 2
STEPS = 8 * SOAK
STOPPED_EARLY = 75


def _arguments(data: Path, output: Path, *more: str) -> list[str]:
    return [
        *("--recipe=llama3-toy", f"--data={data}", f"--output-dir={output}", "--seed=3"),
        *("--activation-checkpoint=none", "--metrics.log_freq=1", "--lr-scheduler.warmup-steps=1"),
        *("--training.local_batch_size=1", "--training.global_batch_size=12"),
        *("--training.seq_len=32", f"--training.steps={STEPS}", f"--checkpoint.interval={EVERY}"),
        *more,
    ]


@pytest.mark.skipif(not SOAK, reason="a soak: set SOAK to a number of starts")
def test_runs_that_are_killed_at_random_compute_what_an_undisturbed_one_does(
    data: Path, tmp_path: Path
) -> None:
    seed = int(os.environ.get("FAULT_SEED", random.SystemRandom().randrange(1 << 32)))
    chance = random.Random(seed)
    print(f"instants of this run: FAULT_SEED={seed}")
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    # Weights are drawn by rank on a CPU, so both runs begin with the same ones.
    worlds.run(4, _arguments(data, whole, "--steps-this-run=2"), whole)
    shutil.copytree(whole, parts)
    done, told, lost = 2, True, list[int]()
    for number in range(1, SOAK + 1):
        tensor = chance.choice((1, 2))
        world = tensor * chance.randint(1, 4 if tensor == 1 else 3)
        degree = f"--parallelism.tensor_parallel_degree={tensor}"
        running = worlds.start(world, _arguments(data, parts, degree), parts, attempt=str(number))
        running.wait_for("starts at step")
        resumed = int(running.text().split("starts at step ")[1].split()[0])
        if told:
            assert resumed == done, f"FAULT_SEED={seed}"
        else:
            lost.append(done - resumed)
        last = resumed + chance.randint(1, 5)
        running.wait_for(f"progress step={last}/", seconds=300)
        told = chance.random() < 0.4
        if told:
            running.signal(signal.SIGTERM, ranks=[chance.randrange(world)])
            assert running.wait() == [STOPPED_EARLY] * world, running.text()
        else:
            running.signal(signal.SIGKILL)
            running.wait()
        now = events(parts, "step")
        done = now[-1]["step"]
        how = "told to stop" if told else "killed"
        print(f"tensor {tensor}, {world} ranks: {resumed} to {done}, {how}")
    found = losses(parts)
    steps = max(found) - 2
    worlds.run(4, _arguments(data, whole, f"--steps-this-run={steps}"), whole, attempt="1")
    expected = losses(whole)
    furthest = max(abs(found[step] - expected[step]) for step in expected)
    print(f"furthest loss from that of 4 undisturbed ranks: {furthest:.2g}; lost in kills: {lost}")
    assert found.keys() == expected.keys() == set(range(1, max(found) + 1))
    assert furthest < TOLERANCE, f"FAULT_SEED={seed}"
    assert max(lost, default=0) < 2 * EVERY
