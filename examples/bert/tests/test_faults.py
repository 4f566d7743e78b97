"""Jobs that lose workers, nodes and everything, against a run that nothing disturbed.

Every step that a disturbed job computed, before and after a fault, must have the loss of the
undisturbed run; so state that was lost or restored wrongly shows, and samples that were skipped or
seen twice show too.
"""

import os
import random
import signal
import subprocess
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from tests.support import forked
from tests.support.etcd_server import NO_ETCD, find_etcd, running_etcd
from tests.support.training_job import ENVIRONMENT, Flags, Job, curve, job, named, run

pytestmark = pytest.mark.training
STEPS = 44
# No test needs the rest of a curve once it has gone on after its last fault.
FEW = ("--steps-this-run", 8)
# Loss is printed in double precision; sums over workers differ in the last bit of single precision.
EXACT = 1e-6


@pytest.fixture(scope="module")
def flags(tmp_path_factory: pytest.TempPathFactory) -> Flags:
    folder = tmp_path_factory.mktemp("data")
    data = folder / "data"
    run(
        "prepare_data",
        *("--synthetic", "--output-dir", data, "--shards", 4, "--documents", 100),
        *("--seq-len", 32, "--max-pred-len", 5),
        folder=folder,
    )
    return Flags(data=data, steps=STEPS, checkpoint_every=5)


@pytest.fixture(scope="module")
def undisturbed(flags: Flags, tmp_path_factory: pytest.TempPathFactory) -> dict[int, float]:
    """The curve of one process without torchrun."""
    folder = tmp_path_factory.mktemp("undisturbed")
    output = folder / "output"
    run("pretrain", *flags.of(output), folder=folder)
    found = curve(output)
    assert list(found) == list(range(1, STEPS + 1))
    assert found[STEPS] < found[1] - 0.3, "nothing was learnt, so equal curves would say nothing"
    return found


class Disturbance:
    """Instants drawn from a seed that every failure prints."""

    def __init__(self) -> None:
        self.seed = int(os.environ.get("FAULT_SEED", random.SystemRandom().randrange(1 << 32)))
        self._random = random.Random(self.seed)

    def steps(self) -> int:
        """Return how many steps a start computes before its fault."""
        return self._random.randint(2, 4)

    def one_of(self, pids: list[int]) -> int:
        return self._random.choice(pids)


@pytest.fixture
def disturbance(record_property: Callable[[str, object], None]) -> Disturbance:
    made = Disturbance()
    record_property("FAULT_SEED", made.seed)
    print(f"instants of this run: FAULT_SEED={made.seed}")
    return made


def last_start(output: Path) -> dict[str, Any]:
    return named(output, "start")[-1]


def starts(output: Path) -> int:
    """Return how often the run has started; torchrun may need two starts for one lost worker."""
    return len(named(output, "start"))


def wait_for_steps(job: Job, output: Path, *, after: int, steps: int) -> None:
    """Wait until a start later than the first ``after`` ones has computed ``steps`` steps."""

    def reached() -> bool:
        if starts(output) <= after:
            return False
        now = last_start(output)["start"]
        return sum(each["start"] == now for each in named(output, "step")) >= steps

    job.wait_for(reached, f"{steps} steps after start {after}")


def assert_nothing_repeated(output: Path) -> None:
    """The last start went on at the very step where the one before it had stopped."""
    assert last_start(output)["step"] == named(output, "stopped")[-1]["step"]


def assert_resumed(output: Path, *, every: int) -> None:
    """The last start began with a checkpoint, and not with an old one."""
    now = last_start(output)
    done = [each["step"] for each in named(output, "step") if each["start"] != now["start"]]
    assert now["step"] > 0
    # One checkpoint may still have been on its way.
    assert now["step"] >= max(done) - 2 * every


def assert_same_curve(
    output: Path, undisturbed: dict[int, float], disturbance: Disturbance
) -> None:
    """Every step up to the last one was computed, with the loss of the undisturbed run."""
    found = curve(output)
    expected = {step: loss for step, loss in undisturbed.items() if step <= max(found)}
    assert found == pytest.approx(expected, rel=EXACT), f"FAULT_SEED={disturbance.seed}"


def test_a_job_goes_on_through_lost_workers_notices_joins_and_a_lost_store(
    flags: Flags, undisturbed: dict[int, float], disturbance: Disturbance, tmp_path: Path
) -> None:
    output = tmp_path / "output"
    nodes = {"n0": 2, "n1": 1}
    with job(tmp_path / "first", flags.of(output), workers=nodes) as first:
        first.start("n0", "n1")
        wait_for_steps(first, output, after=0, steps=6 + disturbance.steps())
        before = starts(output)
        os.kill(disturbance.one_of(first.workers("n0") + first.workers("n1")), signal.SIGKILL)

        wait_for_steps(first, output, after=before, steps=disturbance.steps())
        assert last_start(output)["world"] == 3
        assert_resumed(output, every=flags.checkpoint_every)
        told = [line for line in first.said() if line.startswith("failed at=")]
        assert any("has gone" in line or "Connection" in line for line in told), first.output()
        before = starts(output)
        first.terminate("n1")

        wait_for_steps(first, output, after=before, steps=disturbance.steps())
        assert last_start(output)["world"] == 2
        assert_nothing_repeated(output)
        before = starts(output)
        first.add("n1", to="n0")

        wait_for_steps(first, output, after=before, steps=disturbance.steps())
        assert last_start(output)["world"] == 3
        assert_nothing_repeated(output)
        first.lose("n0")
        assert first.wait("n1") != 0

    more = flags.of(output, *FEW)
    with job(tmp_path / "second", more, nodes="1", workers={"n0": 1}) as second:
        second.start("n0")
        assert second.wait("n0") == 0, second.output()
    assert last_start(output)["world"] == 1
    assert_resumed(output, every=flags.checkpoint_every)
    assert_same_curve(output, undisturbed, disturbance)


@pytest.mark.skipif(find_etcd() is None, reason=NO_ETCD)
def test_a_sharded_job_that_meets_at_etcd_survives_the_loss_of_its_first_node(
    flags: Flags, undisturbed: dict[int, float], disturbance: Disturbance, tmp_path: Path
) -> None:
    output = tmp_path / "output"
    with (
        running_etcd(tmp_path) as etcd,
        job(
            tmp_path / "job",
            flags.of(output, "--parallel", "fsdp", "--steps-this-run", 18),
            backend="etcd-v3",
            endpoint=etcd.endpoint,
        ) as running,
    ):
        running.start("n0", "n1")
        wait_for_steps(running, output, after=0, steps=6 + disturbance.steps())
        assert last_start(output)["world"] == 4
        running.lose("n0")

        assert running.wait("n1") == 0, running.output()
    assert last_start(output)["world"] == 2
    assert_resumed(output, every=flags.checkpoint_every)
    assert_same_curve(output, undisturbed, disturbance)


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path]:
    """A file system with room for two checkpoints of the runs here, and not for three."""
    disk = tmp_path / "disk"
    disk.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=20m", "none", str(disk)], capture_output=True
    )
    if made.returncode != 0:
        pytest.skip("may not mount a file system here")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_a_disk_without_room_for_all_that_stays_ends_a_job_before_its_first_step(
    flags: Flags, small_disk: Path, tmp_path: Path
) -> None:
    output = small_disk / "output"
    with job(tmp_path / "job", flags.of(output), nodes="1", workers={"n0": 2}) as running:
        running.start("n0")
        assert running.wait("n0") != 0

    told = [line for line in running.said() if "the disk is full" in line]
    assert len(told) == 1
    # Two checkpoints would fit: the third would find the disk full, after hours.
    assert starts(output) == 0
    subprocess.run(["mount", "-o", "remount,size=60m", str(small_disk)], check=True)
    more = flags.of(output, *FEW)
    with job(tmp_path / "again", more, nodes="1", workers={"n0": 2}) as again:
        again.start("n0")
        assert again.wait("n0") == 0, again.output()
    assert starts(output) == 1


def test_mistake_is_tried_once_and_not_as_often_as_torchrun_may_restart(tmp_path: Path) -> None:
    log = tmp_path / "log"
    refused = forked.start(
        "torch.distributed.run",
        [
            *("--standalone", "--nproc-per-node", "2"),
            *("--max-restarts", "100", "--monitor-interval", "0.1"),
            *("-m", "ultrascale_bert.pretrain", "--device", "cpu"),
            *("--data-dir", str(tmp_path / "nowhere"), "--output-dir", str(tmp_path / "output")),
        ],
        environment=ENVIRONMENT,
        output=log,
    )

    try:
        status = refused.wait(120)
    finally:
        refused.kill()
    assert status != 0
    assert log.read_text().count("correct --data-dir") == 1, log.read_text()
