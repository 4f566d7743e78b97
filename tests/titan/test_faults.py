"""A fault of a run with a recipe costs what docs/recipes.md says, and never a wrong resume."""

import json
import shutil
import signal
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed.checkpoint as dcp
import worlds
from torch.distributed.checkpoint.metadata import TensorStorageMetadata
from toys import arguments, events, losses, starts

from ultrascale_training.checkpoints import open_checkpoint, open_store
from ultrascale_training.titan.tokens import TokenWriter

_OPTIONS: dict[str, object] = {"checkpoint__interval": 2, "training__global_batch_size": 4}


@pytest.fixture(scope="module")
def kept(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the output of a run with checkpoints of steps 2 and 4."""
    output = tmp_path_factory.mktemp("kept") / "run"
    worlds.run(1, arguments("llama3-toy", data, output, steps=4, **_OPTIONS), output)
    return output


@pytest.fixture
def run(kept: Path, tmp_path: Path) -> Path:
    """Return a copy of that output."""
    return Path(shutil.copytree(kept, tmp_path / "run"))


def going_on(data: Path, output: Path, **options: object) -> list[str]:
    return arguments("llama3-toy", data, output, steps=6, **(_OPTIONS | options))


def test_a_flipped_bit_is_named_and_the_checkpoint_before_is_taken(data: Path, run: Path) -> None:
    file = next((run / "checkpoints" / "step-00000004").glob("*.distcp"))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)

    log = worlds.run(1, going_on(data, run), run).text()

    assert "step-00000004 is bad and is set aside" in log
    assert starts(run) == [0, 2]
    assert [*losses(run)] == [1, 2, 3, 4, 5, 6]


def test_a_state_that_is_no_number_is_given_up_once_and_counts_as_a_failure(
    data: Path, run: Path
) -> None:
    # Elsewhere, as threads of torch that have worked here would not be in the forked processes.
    poisoning = get_context("fork").Process(target=poison, args=(run / "checkpoints",))
    poisoning.start()
    poisoning.join()
    assert poisoning.exitcode == 0

    # The first time a device may have computed wrong.
    for words in ("the next start repeats it", "that checkpoint is set aside"):
        assert worlds.fail(1, going_on(data, run), run).statuses == [1]
        (kept,) = [file for file in (run / "failures").iterdir() if words in file.read_text()]
        kept.unlink()
    worlds.run(1, going_on(data, run), run)

    assert starts(run) == [0, 5, 5, 4]
    assert [*losses(run)] == [1, 2, 3, 4, 5, 6]
    assert 8 <= json.loads((run / "restarts.json").read_text())["left"] < 10


def test_a_run_whose_newest_checkpoint_is_gone_trains_no_paid_step_again_without_a_word(
    data: Path, run: Path
) -> None:
    shutil.rmtree(run / "checkpoints" / "step-00000004")

    ended = worlds.fail(1, going_on(data, run), run)

    assert ended.statuses == [2]
    assert "says that 4 steps are saved, and the newest checkpoint has 2" in ended.text()
    assert [each["step"] for each in events(run, "step")] == [1, 2, 3, 4]
    (run / "restarts.json").unlink()
    worlds.run(1, going_on(data, run), run)
    assert starts(run) == [0, 2]


def test_a_second_run_in_its_output_ends_and_spoils_nothing(data: Path, run: Path) -> None:
    first = worlds.start(1, [*going_on(data, run), "--training.steps=4000"], run)
    first.wait_for("starts at step 4")
    second = worlds.fail(
        1, going_on(data, run), run.parent / "elsewhere", attempt="1", run_id="other"
    )

    assert second.statuses == [2]
    assert "run toy of pod" in second.text()
    first.signal(signal.SIGTERM)
    assert first.wait() == [75]
    assert starts(run) == [0, 4]


def test_what_makes_it_another_run_is_refused_all_at_once(data: Path, run: Path) -> None:
    given = going_on(data, run, training__seq_len=32, training__global_batch_size=6)
    ended = worlds.fail(1, [*given, "--recipe=qwen3-toy"], run)

    assert ended.statuses == [2]
    told = [line.partition(":")[0] for line in ended.text().splitlines() if line.startswith("--")]
    assert told == ["--recipe", "--training.seq_len", "--training.global_batch_size"]


def test_other_data_are_refused_unless_they_are_wanted(run: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    writer = TokenWriter(other, vocabulary=2048, end=0, tokenizer="none")
    for start in range(40):
        writer.add([*range(1 + start, 60 + start)])
    writer.close()

    refused = worlds.fail(1, going_on(other, run), run)
    assert refused.statuses == [2]
    assert "--data" in refused.text()
    assert "--accept-new-data" in refused.text()
    worlds.run(1, [*going_on(other, run), "--accept-new-data"], run)
    assert starts(run) == [0, 4]


def test_a_disk_without_room_for_all_that_stays_ends_a_run_before_its_first_step(
    data: Path, run: Path
) -> None:
    ended = worlds.fail(1, [*going_on(data, run), "--keep=1000000000"], run)

    assert ended.statuses == [2]
    assert "as many checkpoints stay beside the one being written" in ended.text()
    assert [each["step"] for each in events(run, "step")] == [1, 2, 3, 4]


def test_a_shard_that_changed_since_it_was_written_is_not_trained_on(
    data: Path, run: Path, tmp_path: Path
) -> None:
    changed = Path(shutil.copytree(data, tmp_path / "changed"))
    shard = changed / "tokens-00000.npy"
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 1
    shard.write_bytes(content)

    for option in ("--data", "--validation-data"):
        ended = worlds.fail(1, [*going_on(data, run), f"{option}={changed}"], run)

        assert ended.statuses == [2]
        assert "tokens-00000.npy" in ended.text()
        assert "differ from what was written" in ended.text()


def test_a_run_without_a_restart_left_does_not_begin(data: Path, run: Path) -> None:
    ledger = run / "restarts.json"
    used_up = {"left": 0.5, "running": {"nodes": 1, "step": 4, "since": 0}}
    ledger.write_text(json.dumps(json.loads(ledger.read_text()) | used_up))

    ended = worlds.fail(1, going_on(data, run), run)

    assert ended.statuses == [2]
    assert "no restart is left" in ended.text()
    assert [each["step"] for each in events(run, "step")] == [1, 2, 3, 4]


def poison(checkpoints: Path) -> None:
    """Write a checkpoint of step 5 whose sums are right, and whose weights are no numbers."""
    store = open_store(checkpoints, keep=4)
    found = open_checkpoint(str(checkpoints / "step-00000004"))
    kinds = store.reader(found).read_metadata().state_dict_metadata
    # What is no tensor is read as it is.
    state: dict[str, Any] = {
        name: torch.empty(kind.size) if isinstance(kind, TensorStorageMetadata) else None
        for name, kind in kinds.items()
    }
    dcp.load(state, storage_reader=store.reader(found), no_dist=True)
    for name, value in state.items():
        if name.endswith(".weight") and not name.startswith("optimizer."):
            value.fill_(torch.nan)
    writer = store.writer(5, attempt="poison", about=found.about)
    dcp.save(state, storage_writer=writer, no_dist=True)
