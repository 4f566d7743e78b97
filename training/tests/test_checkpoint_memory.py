"""Checkpoints in the memory of HyperPod's nodes: fast where they hold, harmless where they do not.

AWS's own client speaks to a service over HTTP; the service of HyperPod itself was not run.
"""

# Checked where torch is installed and where it is not.
# pyright: reportMissingImports=false, reportPrivateImportUsage=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

import logging
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.support.memory_service import MemoryService, running_memory_service
from tests.support.no_torch import NO_TORCH

torch = pytest.importorskip("torch", reason=NO_TORCH)
pytest.importorskip(
    "amzn_sagemaker_checkpointing", reason="no client of HyperPod here: run `make training`"
)

from ultrascale_training.checkpoints import (
    NanGuard,
    Saver,
    Store,
    SuspectCheckpointError,
    load,
    newest_sound,
    open_store,
)

pytestmark = pytest.mark.training
Group = Any


@pytest.fixture(scope="module")
def group() -> Generator[Group]:
    """A process group of this process alone."""
    import torch.distributed as dist

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield dist.group.WORLD
    dist.destroy_process_group()


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Generator[MemoryService]:
    with running_memory_service() as running:
        monkeypatch.setenv("ULTRASCALE_MEMORY_URL", running.url)
        yield running


@pytest.fixture
def store(service: MemoryService, tmp_path: Path) -> Store:
    made = open_store(tmp_path / "checkpoints", keep=2, memory=True)
    made.prepare()
    return made


def save(store: Store, group: Group, *steps: int, attempt: str, durable_every: int = 2) -> None:
    saver = Saver(store, group=group, attempt=attempt)
    for step in steps:
        state = {f"model.{n}": torch.full((64, 9), float(step)) for n in range(3)}
        saver.save(step, state, {"model": "tiny"}, durable=step % durable_every == 0)
    saver.close()


def resumed(store: Store, group: Group) -> tuple[int, set[float]]:
    """Return the step of the checkpoint that a start takes, and the numbers in it."""
    found = newest_sound(store, group)
    assert found is not None
    state = {f"model.{n}": torch.full((64, 9), -1.0) for n in range(3)}
    load(found, state, group=group)
    assert found.about == {"model": "tiny"}
    return found.step, {value for each in state.values() for value in each.unique().tolist()}


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    ours = [each for each in caplog.records if each.name == "ultrascale_training"]
    return [each.getMessage() for each in ours if each.levelno >= logging.WARNING]


def test_a_run_goes_on_from_memory_where_that_is_newer_than_the_disk(
    store: Store, group: Group, tmp_path: Path
) -> None:
    save(store, group, 1, 2, 3, attempt="a")

    assert resumed(store, group) == (3, {3.0})
    assert [name for name in store.named() if not store.open(name).durable] == [
        "memory-step-00000003-a",
        "memory-step-00000001-a",
    ]
    # What the disk has is whole without memory.
    assert resumed(open_store(tmp_path / "checkpoints", keep=2), group) == (2, {2.0})


def test_what_memory_has_lost_is_named_and_the_checkpoint_before_is_taken(
    store: Store, service: MemoryService, group: Group, caplog: pytest.LogCaptureFixture
) -> None:
    save(store, group, 2, 3, attempt="a")
    service.replace(3, 0, None)

    assert resumed(store, group) == (2, {2.0})
    (told,) = said(caplog)
    assert "memory-step-00000003-a is bad" in told
    assert "no node holds __0_0.distcp in memory any more" in told


def test_a_part_of_another_step_is_not_taken_for_the_right_one(
    store: Store, service: MemoryService, group: Group, caplog: pytest.LogCaptureFixture
) -> None:
    save(store, group, 2, 3, 5, attempt="a")
    # It is whole, and the service's own sum of it is right.
    service.replace(5, 0, service.parts(3)[0])

    assert resumed(store, group) == (3, {3.0})
    (told,) = said(caplog)
    assert "__0_0.distcp differs from what was written" in told


def test_a_service_that_fails_costs_one_line_and_no_checkpoint_of_the_disk(
    store: Store, service: MemoryService, group: Group, caplog: pytest.LogCaptureFixture
) -> None:
    save(store, group, 2, attempt="a")
    service.down = True
    save(store, group, 3, 5, 6, attempt="b", durable_every=6)

    (told,) = said(caplog)
    assert "did not make a namespace" in told
    assert "no such checkpoint before the next durable one" in told
    assert resumed(store, group) == (6, {6.0})
    store.prepare()
    assert "does not answer" in said(caplog)[-1]
    service.down = False
    save(store, group, 7, attempt="c")
    assert resumed(store, group) == (7, {7.0})


def test_the_memory_of_earlier_starts_is_given_back(
    store: Store, service: MemoryService, group: Group, tmp_path: Path
) -> None:
    save(store, group, 1, 3, attempt="a")
    save(store, group, 5, attempt="b")
    assert set(service.namespaces) == {"ultrascale-a", "ultrascale-b"}

    save(store, group, 7, 9, attempt="c")

    assert set(service.namespaces) == {"ultrascale-c"}
    assert [store.open(name).step for name in store.named()] == [9, 7]
    # A start that was killed before it published leaves nothing either.
    (tmp_path / "checkpoints" / "memory-namespace-dead").mkdir()
    (tmp_path / "checkpoints" / "memory-namespace-dead" / "namespace.json").write_text("1")
    store.prepare()
    assert not (tmp_path / "checkpoints" / "memory-namespace-dead").exists()


def test_a_loss_that_is_no_number_gives_up_what_memory_holds_first(
    store: Store, group: Group
) -> None:
    save(store, group, 2, 3, attempt="a")
    found = newest_sound(store, group)

    for _ in range(2):
        assert isinstance(NanGuard(store, found).judge(4, float("nan")), SuspectCheckpointError)
    assert resumed(store, group) == (2, {2.0})
