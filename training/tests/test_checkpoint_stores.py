"""Checkpoints in a directory and in S3: what is damaged is never loaded, and the one before is."""

# Checked where torch is installed and where it is not.
# pyright: reportMissingImports=false, reportPrivateImportUsage=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

import itertools
import json
import logging
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests.support import forked
from tests.support.no_torch import NO_TORCH
from tests.support.s3_server import BUCKET, S3Server, running_s3
from tests.support.training_job import ENVIRONMENT

torch = pytest.importorskip("torch", reason=NO_TORCH)

from torch.distributed.checkpoint import default_planner
from torch.distributed.checkpoint.filesystem import FileSystem as LocalFiles

from ultrascale_training.checkpoints import (
    Checkpoint,
    DirectoryStore,
    NanGuard,
    Saver,
    Store,
    SuspectCheckpointError,
    UnreadableError,
    load,
    newest_sound,
    open_checkpoint,
    open_store,
    sound,
    verify,
)
from ultrascale_training.checkpoints.manifest import FileSum
from ultrascale_training.checkpoints.saver import stager_of
from ultrascale_training.checkpoints.writer import CheckpointWriter
from ultrascale_training.errors import OutsideError, TrainingError
from ultrascale_training.objects import open_objects

pytestmark = pytest.mark.training
ATTEMPTS = itertools.count()
Group = Any


@pytest.fixture(scope="module")
def group() -> Generator[Group]:
    """A process group of this process alone."""
    import torch.distributed as dist

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield dist.group.WORLD
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    pytest.importorskip("s3torchconnector", reason="no connector for S3 here: run `make training`")
    with running_s3() as server:
        yield server


@pytest.fixture(params=["directory", "bucket"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    location = str(tmp_path / "checkpoints")
    if request.param == "bucket":
        for name, value in request.getfixturevalue("s3").environment.items():
            monkeypatch.setenv(name, value)
        location = f"s3://{BUCKET}/{tmp_path.name}/checkpoints"
    made = open_store(location, keep=2)
    made.prepare()
    return made


def state(value: float) -> dict[str, Any]:
    return {f"model.{n}": torch.full((64, 9), value) for n in range(3)}


def save(store: Store, group: Group, *steps: int) -> None:
    saver = Saver(store, group=group, attempt=f"a{next(ATTEMPTS)}")
    for step in steps:
        saver.save(step, state(step), {"model": "tiny"})
    saver.close()


def loaded(checkpoint: Checkpoint | None) -> set[float]:
    """Return the numbers in a checkpoint, which should be its step."""
    assert checkpoint is not None
    found = state(-1.0)
    load(checkpoint, found)
    return {value for tensor in found.values() for value in tensor.unique().tolist()}


def file_of(store: Store, step: int, suffix: str) -> str:
    """Return the name of a file of the checkpoint of ``step``."""
    (found,) = [name for name in store.objects.names(f"step-{step:08d}") if name.endswith(suffix)]
    return found


def change(store: Store, name: str, changed: Callable[[bytes], bytes]) -> None:
    content = store.objects.get(name)
    assert content is not None
    store.objects.delete(name)
    store.objects.put(name, changed(content))


def flip_one_bit(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 4]) + content[middle + 1 :]


def zero_the_tail(content: bytes) -> bytes:
    return content[:-64] + bytes(64)


def told_by_us(caplog: pytest.LogCaptureFixture) -> list[str]:
    ours = [each for each in caplog.records if each.name == "ultrascale_training"]
    return [each.getMessage() for each in ours if each.levelno >= logging.ERROR]


def halve(content: bytes) -> bytes:
    return content[: len(content) // 2]


def empty(content: bytes) -> bytes:
    return content[:0]


def zero(content: bytes) -> bytes:
    return bytes(len(content))


def claim_another_step(content: bytes) -> bytes:
    return content.replace(b'"step": 2', b'"step": 9')


DAMAGE: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "a bit of a tensor": (".distcp", flip_one_bit),
    "the tail of a file": (".distcp", zero_the_tail),
    "half a file": (".distcp", halve),
    "a bit of torch's metadata": (".metadata", flip_one_bit),
    "a bit of the manifest": ("checkpoint.json", flip_one_bit),
    "an empty manifest": ("checkpoint.json", empty),
    "a manifest of zeros": ("checkpoint.json", zero),
    "the manifest of another step": ("checkpoint.json", claim_another_step),
}


# What differs between the places is how a file is read, so a bucket need not meet every damage.
@pytest.mark.parametrize(
    ("store", "damage"),
    [
        *(("directory", damage) for damage in DAMAGE),
        ("bucket", "a bit of a tensor"),
        ("bucket", "an empty manifest"),
    ],
    indirect=["store"],
)
def test_what_is_damaged_is_named_and_the_checkpoint_before_is_taken(
    store: Store, group: Group, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    save(store, group, 1, 2)
    suffix, changed = DAMAGE[damage]
    change(store, file_of(store, 2, suffix), changed)

    found = newest_sound(store, group)

    assert loaded(found) == {1.0}
    (told,) = told_by_us(caplog)
    assert "step-00000002" in told
    assert suffix in told
    # Neither this start nor the next one reads it again, and nobody has to tell it twice.
    assert [(bad.step, bad.cause) for bad in store.aside()] == [(2, "damage")]
    assert newest_sound(store, group) == found
    assert told_by_us(caplog) == [told]


def test_a_node_that_reads_other_bytes_than_another_sets_no_checkpoint_aside(
    store: Store, group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(store, group, 1, 2)
    monkeypatch.setenv("ULTRASCALE_NODE", "ip-10-0-0-7")
    reads, real = itertools.count(), sound.sum_of

    def misread(stream: Any) -> FileSum:
        return FileSum(bytes=1, sha256="0" * 64) if next(reads) == 0 else real(stream)

    with monkeypatch.context() as patched:
        patched.setattr(sound, "sum_of", misread)
        with pytest.raises(UnreadableError, match=r"node ip-10-0-0-7 .*reads what was written"):
            newest_sound(store, group)

    assert store.aside() == []
    assert loaded(newest_sound(store, group)) == {2.0}


def test_a_run_whose_checkpoints_are_all_damaged_is_refused_and_not_begun_anew(
    store: Store, group: Group
) -> None:
    save(store, group, 1, 2)
    for step in (1, 2):
        change(store, file_of(store, step, ".distcp"), flip_one_bit)

    for _ in range(2):
        with pytest.raises(TrainingError, match="no checkpoint of this run can be loaded") as told:
            newest_sound(store, group)
        assert {"step-00000001", "step-00000002"} <= {
            line.partition(":")[0].removeprefix("bad-")[:13]
            for line in str(told.value).splitlines()
        }


def test_a_place_without_checkpoints_begins_at_step_0(store: Store, group: Group) -> None:
    assert newest_sound(store, group) is None


def test_only_as_many_as_asked_for_are_kept_and_what_was_set_aside_goes_with_time(
    store: Store, group: Group
) -> None:
    save(store, group, 1, 2)
    change(store, file_of(store, 2, ".distcp"), flip_one_bit)
    assert loaded(newest_sound(store, group)) == {1.0}

    # The damaged one does not count: otherwise the only sound one would go.
    save(store, group, 3)
    assert [store.open(name).step for name in store.named()] == [3, 1]
    save(store, group, 4)

    assert [store.open(name).step for name in store.named()] == [4, 3]
    assert store.aside() == []
    assert {name.partition("/")[0] for name in store.objects.names()} == set(store.named())


def test_a_step_that_is_computed_again_replaces_its_checkpoint(store: Store, group: Group) -> None:
    save(store, group, 1, 2)
    save(store, group, 2)

    assert [store.open(name).step for name in store.named()] == [2, 1]
    assert loaded(newest_sound(store, group)) == {2.0}


def test_what_a_killed_writer_left_is_not_read_and_goes_at_the_next_start(
    store: Store, group: Group
) -> None:
    save(store, group, 1, 2)
    left = "partial-00000003-dead" if store.location.startswith("/") else "step-00000003-dead"
    store.objects.put(f"{left}/__0_0.distcp", b"half")

    assert loaded(newest_sound(store, group)) == {2.0}
    store.prepare()

    assert left not in store.objects.folders()
    assert len(store.named()) == 2


def test_a_save_whose_files_another_start_has_deleted_replaces_no_checkpoint(
    store: Store, group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A start on nodes that were cut off goes on to write beside the one that took its place.
    saver = Saver(store, group=group, attempt="cut-off")
    made = CheckpointWriter.finish

    def late(writer: CheckpointWriter, **arguments: Any) -> None:
        monkeypatch.setattr(CheckpointWriter, "finish", made)
        other = open_store(store.location, keep=2)
        other.prepare()
        save(other, group, 4)
        made(writer, **arguments)

    monkeypatch.setattr(CheckpointWriter, "finish", late)
    saver.save(4, state(-4), {})
    with pytest.raises(OutsideError, match="Another start of this run has begun since"):
        saver.wait()

    assert loaded(newest_sound(store, group)) == {4}


def test_training_goes_on_and_changes_its_state_while_a_checkpoint_is_written(
    group: Group, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path / "checkpoints", keep=2)
    store.prepare()
    tensors, written, slow = state(1.0), Event(), LocalFiles.create_stream

    @contextmanager
    def wait(files: Any, path: Any, mode: str) -> Generator[Any]:
        assert mode != "wb" or written.wait(60)
        with slow(files, path, mode) as stream:
            yield stream

    monkeypatch.setattr(LocalFiles, "create_stream", wait)
    saver = Saver(store, group=group, attempt="a")
    saver.save(1, tensors, {})
    # The save has returned, and not a byte is written yet.
    for tensor in tensors.values():
        tensor.fill_(2.0)
    saver.check()
    assert saver.published == []
    written.set()
    saver.close()

    assert saver.published == [1]
    assert loaded(newest_sound(store, group)) == {1.0}


def test_saves_are_planned_once_and_not_beside_every_training_step(
    store: Store, group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first worker plans for thousands, in the interpreter that trains."""
    planned: list[int] = []
    asked: list[int] = []
    plan = default_planner.create_default_global_save_plan

    def noted(plans: Any) -> Any:
        planned.append(len(plans))
        return plan(plans)

    monkeypatch.setattr(default_planner, "create_default_global_save_plan", noted)
    monkeypatch.setattr(store, "check_room", asked.append)
    save(store, group, 1, 2, 3)

    assert planned == [1]
    assert loaded(newest_sound(store, group)) == {3.0}
    # Each save looks for room, though it plans nothing.
    if isinstance(store, DirectoryStore):
        assert len(asked) == 3
        assert min(asked) == asked[0] == 3 * 64 * 9 * 8


def test_a_save_that_failed_leaves_no_plan_that_others_lack(
    group: Group, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path / "checkpoints", keep=2)
    store.prepare()
    saver = Saver(store, group=group, attempt=f"a{next(ATTEMPTS)}")
    for step in (1, 3):
        with monkeypatch.context() as patched:
            # Behind the plan of the first worker, and before any worker has its part of it.
            patched.setattr(store, "check_room", raise_no_room)
            saver.save(step, state(step), {})
            with pytest.raises(TrainingError, match="no room"):
                saver.wait()
        saver.save(step + 1, state(step + 1), {})
        saver.wait()
        assert loaded(newest_sound(store, group)) == {step + 1.0}
    saver.close()


def raise_no_room(_: int) -> None:
    raise TrainingError("no room")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_state_of_a_gpu_is_copied_to_pinned_memory_that_is_used_again(
    group: Group, tmp_path: Path
) -> None:
    store = open_store(tmp_path / "checkpoints", keep=2)
    store.prepare()
    saver = Saver(store, group=group, attempt="a", device="cuda")
    stager: Any = stager_of("cuda")
    copied = [stager.stage({"x": torch.ones(1024, device="cuda")})["x"] for _ in range(2)]
    saver.save(1, {name: value.cuda() for name, value in state(1.0).items()}, {})
    saver.close()

    assert all(copy.is_pinned() for copy in copied)
    assert copied[0].data_ptr() == copied[1].data_ptr()
    assert loaded(newest_sound(store, group)) == {1.0}


def test_a_checkpoint_that_the_user_names_is_verified_as_well(store: Store, group: Group) -> None:
    save(store, group, 1)
    (name,) = store.named()
    verify(open_checkpoint(f"{store.location}/{name}"), group)
    change(store, file_of(store, 1, ".distcp"), flip_one_bit)

    with pytest.raises(TrainingError, match=r"--resume: .*step-00000001.* is damaged: __0_0\.dist"):
        verify(open_checkpoint(f"{store.location}/{name}"), group)


def test_a_loss_that_is_no_number_long_after_a_resume_blames_no_checkpoint(
    store: Store, group: Group
) -> None:
    save(store, group, 1, 2)
    guard = NanGuard(store, newest_sound(store, group), within=10)

    assert isinstance(guard.judge(13, float("nan")), SuspectCheckpointError)
    assert isinstance(guard.judge(13, float("nan")), TrainingError)
    assert store.aside() == []
    assert isinstance(guard.judge(12, float("nan")), SuspectCheckpointError)
    assert loaded(newest_sound(store, group)) == {1.0}


def test_one_restart_tells_a_wrong_device_from_a_run_that_diverges(
    store: Store, group: Group, caplog: pytest.LogCaptureFixture
) -> None:
    save(store, group, 1, 2)

    def resumed() -> NanGuard:
        return NanGuard(store, newest_sound(store, group), within=10)

    # The start that wrote the checkpoints met it, and its repetition has a number.
    assert isinstance(NanGuard(store, None).judge(5, float("nan")), SuspectCheckpointError)
    resumed().passed(4)
    assert "a device computed wrong" not in caplog.text
    resumed().passed(6)
    assert "step 5 had no number as its loss before" in caplog.text
    # Another time it has none: the checkpoint is as good as the run that wrote it.
    assert isinstance(NanGuard(store, None).judge(5, float("nan")), SuspectCheckpointError)
    told = resumed().judge(5, float("nan"))
    assert isinstance(told, TrainingError)
    assert "--load" in str(told)
    assert store.aside() == []
    assert loaded(newest_sound(store, group)) == {2.0}


def test_the_first_worker_reads_a_manifest_for_all(
    store: Store, group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of 16,000 workers would read the sums of all files."""
    save(store, group, 1)
    read: list[str] = []
    get = store.objects.get

    def noted(name: str) -> bytes | None:
        read.append(name)
        return get(name)

    monkeypatch.setattr(store.objects, "get", noted)

    assert newest_sound(store, group) is not None
    assert [name for name in read if name.endswith("checkpoint.json")] == read
    assert len(read) == 1


def test_room_is_there_for_all_checkpoints_that_stay_before_the_first_step(
    store: Store, group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(store, "check_room", asked.append)

    store.check_room_of_run(100)
    monkeypatch.undo()
    save(store, group, 1, 2)
    monkeypatch.setattr(store, "check_room", asked.append)
    store.check_room_of_run(100)

    assert asked == [100 * (store.keep + 1), 100 * (store.keep - 1)]


def test_the_only_checkpoint_is_not_given_up_for_a_loss_that_is_no_number(
    store: Store, group: Group
) -> None:
    save(store, group, 2)

    guard = NanGuard(store, newest_sound(store, group), within=10)
    guard.judge(3, float("inf"))
    told = guard.judge(3, float("inf"))

    assert isinstance(told, TrainingError)
    assert "there is no checkpoint before that one" in str(told)
    assert loaded(newest_sound(store, group)) == {2.0}


def test_small_files_of_a_run_are_read_as_they_were_written(store: Store) -> None:
    objects = open_objects(store.location.removesuffix("/checkpoints"))
    objects.put("restarts.json", b"{}")
    objects.put("failures/rank1.txt", b"trace")

    assert objects.get("restarts.json") == b"{}"
    assert objects.get("nowhere.json") is None
    assert objects.names("failures/") == ["failures/rank1.txt"]
    assert "failures" in objects.folders()
    objects.delete("restarts.json")
    assert objects.get("restarts.json") is None


def test_a_bucket_that_is_not_there_is_told_before_the_first_step(
    s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)

    with pytest.raises(TrainingError, match="s3://nowhere/run: the first worker cannot write"):
        open_store("s3://nowhere/run", keep=2).prepare()


def test_a_bucket_without_a_region_is_told_with_the_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("s3torchconnector")
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)

    with pytest.raises(TrainingError, match=r"^AWS_REGION: an output in S3 needs the region"):
        open_store("s3://bucket/run", keep=2)


def test_the_speed_of_a_place_is_told_beside_that_of_cp(tmp_path: Path) -> None:
    place, log = tmp_path / "place", tmp_path / "log"
    place.mkdir()
    program = forked.start(
        "ultrascale_training.checkpoint_speed",
        [str(place), "--megabytes", "4"],
        environment=ENVIRONMENT,
        output=log,
    )

    assert program.wait(timeout=120) == 0, log.read_text()
    measured = json.loads(log.read_text())
    assert measured["megabytes"] == pytest.approx(4 * 1.048576, rel=0.01)
    for name in ("held", "save", "verify", "load", "cp"):
        assert measured[f"{name}_seconds"] > 0
    assert list(place.iterdir()) == []
