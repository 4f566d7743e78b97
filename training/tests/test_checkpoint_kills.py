"""Runs of one to six workers that are killed while they save, and resume in another world.

``SOAK=60 pytest -n 0 -s training/tests/test_checkpoint_kills.py`` kills 60 starts in a directory,
60 in S3 and 60 with the memory of HyperPod's nodes instead of three, and tells its figures;
``FAULT_SEED`` repeats the instants of a failure.
"""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import forked
from tests.support.etcd_server import free_ports
from tests.support.memory_service import running_memory_service
from tests.support.no_torch import NO_TORCH
from tests.support.s3_server import BUCKET, running_s3
from tests.support.training_job import ENVIRONMENT

pytest.importorskip("torch", reason=NO_TORCH)

from ultrascale_training.checkpoints import Store, open_store
from ultrascale_training.checkpoints.stores import step_of

pytestmark = pytest.mark.training
LAYOUTS = ("fsdp", "ddp", "tp")
PATIENCE_SECONDS = 60.0
SOAK = int(os.environ.get("SOAK", "0"))
EVERY_SECOND = 2


@dataclass(frozen=True, kw_only=True)
class Place:
    """Place of the checkpoints, and the variables by which workers reach it."""

    location: str
    variables: Mapping[str, str]
    memory: bool = False


class Generation:
    """The workers of one start of the run."""

    def __init__(self, folder: Path, place: Place, *, world: int, layout: str) -> None:
        port = str(free_ports(1)[0])
        self.outputs = [folder / f"{port}-{rank}.log" for rank in range(world)]
        self.workers = [
            forked.start(
                "tests.support.saving_worker",
                [place.location, layout, "0.005"],
                environment={
                    **ENVIRONMENT,
                    **place.variables,
                    "MASTER_ADDR": "127.0.0.1",
                    "MASTER_PORT": port,
                    "WORLD_SIZE": str(world),
                    "RANK": str(rank),
                },
                output=output,
            )
            for rank, output in enumerate(self.outputs)
        ]

    def resumed(self) -> int:
        """Return the step from which all workers go on, once each has loaded it."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            said = [output.read_text() if output.exists() else "" for output in self.outputs]
            steps = {line for text in said for line in text.splitlines() if "resumes" in line}
            if all("resumes" in text for text in said):
                (step,) = steps
                return int(step.split()[1])
            assert all(worker.poll() is None for worker in self.workers), "\n".join(said)
            time.sleep(0.01)
        pytest.fail(self.said())

    def kill(self, rank: int) -> None:
        """Kill one worker, and a little later the others, as an agent does."""
        for worker in (self.workers[rank], *self.workers):
            with suppress(ProcessLookupError):
                os.kill(worker.pid, signal.SIGKILL)
        for worker in self.workers:
            worker.wait(PATIENCE_SECONDS)

    def said(self) -> str:
        return "".join(output.read_text() for output in self.outputs)


@contextmanager
def generation(folder: Path, place: Place, *, world: int, layout: str) -> Generator[Generation]:
    started = Generation(folder, place, world=world, layout=layout)
    try:
        yield started
    finally:
        started.kill(0)


def flip_one_bit(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def zero_the_tail(content: bytes, chance: random.Random) -> bytes:
    # A tensor's own end may be zeros already; half of a file is not.
    kept = chance.randrange(len(content) // 2)
    return content[:kept] + bytes(len(content) - kept)


def cut(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content))]


def empty(_content: bytes, _chance: random.Random) -> bytes:
    return b""


MANIFEST = "checkpoint.json"
Change = Callable[[bytes, random.Random], bytes]
DAMAGES: dict[str, tuple[str, Change]] = {
    "a bit flipped": ("", flip_one_bit),
    "the tail zeroed": ("", zero_the_tail),
    "a file cut": ("", cut),
    "the manifest emptied": (MANIFEST, empty),
}


def damage(store: Store, chance: random.Random) -> str:
    """Change a file of the newest checkpoint in silence, as a disk or a cable does."""
    kind = chance.choice(list(DAMAGES)) if SOAK else "a bit flipped"
    ending, changed = DAMAGES[kind]
    sizes = store.objects.sizes(f"{store.named()[0]}/")
    name = chance.choice([name for name, size in sizes.items() if size and name.endswith(ending)])
    content = store.objects.get(name)
    assert content
    store.objects.put(name, changed(content, chance))
    return kind


def plan(chance: random.Random) -> Iterator[tuple[int, str]]:
    """Yield world and layout of each start; the last layout reads what the others wrote."""
    worlds: Sequence[int] = [3, 1, 2]
    for number in range(SOAK or len(worlds)):
        world = chance.randint(1, 6) if SOAK else worlds[number]
        yield world, chance.choice(LAYOUTS) if SOAK else LAYOUTS[number]


SOAKED = pytest.mark.skipif(not SOAK, reason="kills elsewhere than on a disk are a soak: set SOAK")


@pytest.fixture(
    params=["directory", *(pytest.param(name, marks=SOAKED) for name in ("bucket", "memory"))]
)
def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Generator[Place]:
    location = str(tmp_path / "checkpoints")
    if request.param == "bucket":
        pytest.importorskip("s3torchconnector")
        with running_s3() as server:
            for name, value in server.environment.items():
                monkeypatch.setenv(name, value)
            yield Place(location=f"s3://{BUCKET}/checkpoints", variables=server.environment)
    elif request.param == "memory":
        pytest.importorskip("amzn_sagemaker_checkpointing")
        with running_memory_service() as service:
            monkeypatch.setenv("ULTRASCALE_MEMORY_URL", service.url)
            reached = {"ULTRASCALE_MEMORY_URL": service.url, "DURABLE_EVERY": "4"}
            yield Place(location=location, variables=reached, memory=True)
    else:
        yield Place(location=location, variables={})


def test_kills_while_saving_and_silent_damage_never_give_a_wrong_state(
    place: Place, tmp_path: Path
) -> None:
    seed = int(os.environ.get("FAULT_SEED", random.SystemRandom().randrange(1 << 32)))
    chance = random.Random(seed)
    print(f"instants of this run: FAULT_SEED={seed}")
    store = open_store(place.location, keep=2, memory=place.memory)
    seen: Counter[str] = Counter()
    least, damaged = 0, None
    for number, (world, layout) in enumerate(plan(chance)):
        with generation(tmp_path, place, world=world, layout=layout) as running:
            step = running.resumed()
            assert step >= least, f"FAULT_SEED={seed}"
            if damaged is not None:
                assert step < step_of(damaged)
                assert f"{damaged} is bad and is set aside" in running.said()
            # Where two checkpoints stand, damage to the newest costs one of them.
            deadline = time.monotonic() + PATIENCE_SECONDS
            while len(named := store.named()) < 2 or step_of(named[0]) <= step:
                assert time.monotonic() < deadline, running.said()
                time.sleep(0.002)
            time.sleep(chance.uniform(0.0, 0.2))
            running.kill(chance.randrange(world))
        newest, before, *_ = store.named()
        seen[f"{layout} on {world}"] += 1
        seen["starts"] += 1
        seen["checkpoints"] += step_of(newest) - step
        known = {*store.named(), *(each.name for each in store.aside())}
        seen["killed while one was written"] += not known.issuperset(store.objects.folders())
        damaged, least = None, step_of(newest)
        if number % EVERY_SECOND == 0:
            seen[damage(store, chance)] += 1
            damaged, least = newest, step_of(before)
    print(*(f"{what}: {times}" for what, times in sorted(seen.items())), sep="\n")
    assert seen["starts"] == (SOAK or 3), f"FAULT_SEED={seed}"
