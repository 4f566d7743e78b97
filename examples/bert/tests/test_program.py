"""The training program by its parts and as one process: arguments, model, precision, metrics."""

# Checked where torch is installed and where it is not.
# pyright: reportMissingImports=false, reportPrivateImportUsage=false
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

import json
import os
import re
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.support import forked
from tests.support.memory_service import running_memory_service
from tests.support.no_torch import NO_TORCH

torch = pytest.importorskip("torch", reason=NO_TORCH)

from tests.support.training_job import ENVIRONMENT, Flags, curve, events, named, start_workers
from ultrascale_bert import arguments, optimizer, prepare_data, pretrain, training
from ultrascale_bert.devices import EagerDevice
from ultrascale_bert.model import SIZES, Batch, Bert, Losses, flops_per_token
from ultrascale_bert.optimizer import learning_rate
from ultrascale_bert.replica import Replica
from ultrascale_training.checkpoints import SuspectCheckpointError, tensors_of
from ultrascale_training.errors import TrainingError

pytestmark = pytest.mark.training
NEEDED = ["--data-dir", "/data/wiki", "--output-dir", "/data/output"]
Pretrain = Callable[[Sequence[str]], int]


@pytest.fixture(scope="module")
def flags(tmp_path_factory: pytest.TempPathFactory) -> Flags:
    data = tmp_path_factory.mktemp("data")
    small = ("--documents", "40", "--shards", "2", "--seq-len", "32", "--max-pred-len", "5")
    assert prepare_data.main(["--synthetic", "--output-dir", str(data), *small]) == 0
    return Flags(data=data, steps=12, checkpoint_every=5)


@contextmanager
def in_this_process() -> Generator[Pretrain]:
    """Run the program in this process, which is as before afterwards."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGUSR1)}
    with pytest.MonkeyPatch.context() as patched:
        # torch.distributed replaces it.
        patched.setattr(sys, "excepthook", sys.excepthook)

        def run_with(flags: Sequence[str]) -> int:
            patched.setattr(sys, "argv", ["pretrain", *flags])
            try:
                status = pretrain.main()
                assert status is not None
                return status
            finally:
                if torch.distributed.is_initialized():
                    torch.distributed.destroy_process_group()

        yield run_with
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def run() -> Generator[Pretrain]:
    with in_this_process() as run_with:
        yield run_with


@pytest.fixture(scope="module")
def whole(flags: Flags, tmp_path_factory: pytest.TempPathFactory) -> dict[int, float]:
    """The curve of a run in one piece."""
    output = tmp_path_factory.mktemp("whole")
    with in_this_process() as run_with:
        assert run_with(flags.of(output)) == 0
    found = curve(output)
    assert len(found) == flags.steps
    return found


def test_command_line_of_the_aws_tutorial_is_understood() -> None:
    script_args = (
        "--batch_size 16 --grad_accum_usteps 32 "
        "--data_dir /data/bert_pretrain_wikicorpus_tokenized_hdf5_seqlen128 "
        "--output_dir /data/output --steps_this_run 10"
    )

    parsed = arguments.parse(script_args.split())

    assert (parsed.batch_size, parsed.grad_accum_usteps, parsed.steps_this_run) == (16, 32, 10)
    assert parsed.data_dir == Path("/data/bert_pretrain_wikicorpus_tokenized_hdf5_seqlen128")
    assert (parsed.model, parsed.max_steps, parsed.warmup_steps) == ("large", 28125, 2000)


def test_all_mistakes_of_a_command_line_are_told_at_once() -> None:
    wrong = (
        "--model huge --batch-size 0 --lr zero --device tpu --dropout 1 --steps-this-rum 3 "
        "--seq-len 4096"
    )

    with pytest.raises(TrainingError) as told:
        arguments.parse(wrong.split())

    lines = str(told.value).splitlines()
    assert {line.split(":")[0] for line in lines} == {
        *("--model", "--batch-size", "--lr", "--device", "--dropout", "--seq-len"),
        *("--steps-this-rum", "3", "--data-dir", "--output-dir"),
    }
    assert "--model: must be tiny or mini or small or base or large, got 'huge'" in lines


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ("--global-batch 64 --grad-accum-usteps 2", "give one of them"),
        ("--global-batch 60 --batch-size 16", "must be a multiple of --batch-size 16, got 60"),
        ("--max-steps 100", "--warmup-steps: must be below --max-steps 100, got 2000"),
        ("--device neuron-xla --parallel fsdp", "neuron-xla is none; use ddp"),
    ],
)
def test_flags_that_contradict_each_other_are_refused(flags: str, told: str) -> None:
    with pytest.raises(TrainingError, match=re.escape(told)):
        arguments.parse([*NEEDED, *flags.split()])


def test_arithmetic_of_bert_is_that_of_its_weights() -> None:
    """Six FLOP a token for each weight of its layers, where attention and head are left out."""
    with torch.device("meta"):
        model = Bert(SIZES["base"], positions=512)
    weights = sum(
        parameter.numel()
        for name, parameter in model.named_parameters()
        if name.startswith("layers") and parameter.ndim == 2
    )
    attention = 12 * 12 * 768

    found = flops_per_token(SIZES["base"], vocabulary=30522, seq_len=1, predictions=0)

    assert found == 6 * weights + attention


@pytest.mark.parametrize(
    ("size", "millions"), [("tiny", 4.4), ("mini", 11.2), ("small", 28.8), ("base", 110.1)]
)
def test_sizes_are_the_published_ones(size: str, millions: float) -> None:
    with torch.device("meta"):
        model = Bert(SIZES[size], positions=512)

    # The published figures leave out the pre-training heads.
    heads = ("next_sentence", "transform", "output_bias")
    counted = sum(p.numel() for n, p in model.named_parameters() if not n.startswith(heads))
    assert counted / 1e6 == pytest.approx(millions, rel=0.01)


def test_large_is_bert_large() -> None:
    assert (SIZES["large"].layers, SIZES["large"].hidden, SIZES["large"].heads) == (24, 1024, 16)


def batch(*, rows: int = 2) -> Batch:
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, 50, (rows, 16), generator=generator)
    mask = torch.ones(rows, 16, dtype=torch.long)
    mask[:, 12:] = 0
    return Batch(
        input_ids=ids,
        input_mask=mask,
        segment_ids=torch.zeros_like(ids),
        masked_positions=torch.tensor([[3, 5, 0]]).repeat(rows, 1),
        masked_ids=torch.tensor([[7, 9, 0]]).repeat(rows, 1),
        next_sentence_labels=torch.zeros(rows, dtype=torch.long),
        weights=torch.ones(rows),
    )


def total(losses: Losses) -> Any:
    return losses.masked_lm + losses.next_sentence


def small_model() -> Bert:
    torch.manual_seed(0)
    return Bert(SIZES["tiny"], vocabulary=50, positions=16, dropout=0.0)


def test_padding_changes_no_loss() -> None:
    model, one = small_model(), batch()
    ids = one.input_ids.clone()
    ids[:, 12:] = 0

    padded = model(one._replace(input_ids=ids))

    for loss, expected in zip(padded, model(one), strict=True):
        assert loss.item() == pytest.approx(expected.item(), rel=1e-6)


def test_losses_are_those_of_the_masked_tokens_and_the_first_token() -> None:
    model = small_model().eval()
    one = batch()._replace(masked_positions=torch.tensor([[3, 5, 0], [1, 15, 2]]))
    hidden = model.embeddings(one.input_ids, one.segment_ids)
    for layer in model.layers:
        hidden = layer(hidden, one.input_mask.bool()[:, None, None, :])
    masked_lm = next_sentence = 0.0
    for row, positions in enumerate(one.masked_positions.tolist()):
        for place, position in enumerate(positions):
            seen = model.transform_norm(
                torch.nn.functional.gelu(model.transform(hidden[row, position]))
            )
            scores = (model.embeddings.word.weight @ seen + model.output_bias).double()
            if position:
                masked_lm -= scores.log_softmax(0)[one.masked_ids[row, place]].item()
        guess = model.next_sentence(model.pooler(hidden[row, 0]).tanh()).double()
        next_sentence -= guess.log_softmax(0)[one.next_sentence_labels[row]].item()

    found = model(one)

    assert found.masked_lm.item() == pytest.approx(masked_lm, rel=1e-5)
    assert found.next_sentence.item() == pytest.approx(next_sentence, rel=1e-5)


def test_masked_tokens_are_fetched_as_whole_vectors() -> None:
    with torch.profiler.profile() as profile:
        small_model()(batch()).masked_lm.backward()

    # What XLA makes single numbers of, a third of a million of them for BERT-large.
    assert not {"aten::gather", "aten::scatter_add"} & {each.key for each in profile.key_averages()}


def test_rows_without_weight_change_no_gradient() -> None:
    model = small_model()
    one = batch(rows=2)

    total(model(one._replace(weights=torch.tensor([1.0, 0.0])))).backward()

    mine = [p.grad for p in model.parameters()]
    model.zero_grad()
    total(model(Batch(*(field[:1] for field in one)))).backward()
    for gradient, parameter in zip(mine, model.parameters(), strict=True):
        torch.testing.assert_close(gradient, parameter.grad)


def test_norm_of_half_precision_gradients_is_that_of_all_of_their_squares() -> None:
    @dataclass(frozen=True)
    class Bare(EagerDevice):
        wraps = False

        def sum_up(self, tensors: Sequence[Any]) -> None:
            """Leave them: there is one worker."""

    replica = Replica(
        small_model(), parallel="ddp", device=Bare(torch.device("cpu")), bf16=True, world=1
    )
    total(replica.losses(batch())).backward()
    gradients = [p.grad for p in replica.model.parameters() if p.grad is not None]
    norm = sum(gradient.double().square().sum().item() for gradient in gradients) ** 0.5

    found = replica.finish(clip=norm / 2)

    assert found.item() == pytest.approx(norm, rel=1e-5)
    clipped = sum(gradient.double().square().sum().item() for gradient in gradients) ** 0.5
    assert clipped == pytest.approx(norm / 2, rel=1e-3)


def test_learning_rate_warms_up_and_decays_to_nothing() -> None:
    rates = [learning_rate(step, peak=1.0, warmup=4, steps=10) for step in range(10)]

    assert rates[:5] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert rates[5:] == pytest.approx([5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6])


def test_weights_in_bfloat16_follow_those_in_single_precision() -> None:
    # As on Neuron, where it is the weights that are in bfloat16; rounding here is to nearest.
    single, half = small_model(), small_model().to(torch.bfloat16)
    optimizers = [optimizer.make(model, weight_decay=0.01) for model in (single, half)]
    losses: list[list[float]] = [[], []]
    for _ in range(20):
        for number, model in enumerate((single, half)):
            optimizer.set_rate(optimizers[number], 1e-3)
            loss = total(model(batch()))
            loss.backward()
            optimizers[number].step()
            optimizers[number].zero_grad()
            losses[number].append(loss.item())

    assert losses[0][-1] < 0.7 * losses[0][0]
    assert losses[1] == pytest.approx(losses[0], rel=0.1)
    (state, *_) = optimizers[1].state.values()
    assert state["exp_avg"].dtype == torch.float32


def test_run_in_pieces_has_the_curve_of_a_run_in_one_piece(
    run: Pretrain, flags: Flags, whole: dict[int, float], tmp_path: Path
) -> None:
    assert run(flags.of(tmp_path, "--steps-this-run", 7)) == 0
    assert run(flags.of(tmp_path, "--no-save-async")) == 0

    assert [each["step"] for each in named(tmp_path, "start")] == [0, 7]
    assert curve(tmp_path) == whole


def test_tensorboard_shows_each_step_once_after_a_step_was_computed_again(
    run: Pretrain, flags: Flags, tmp_path: Path
) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    assert run(flags.of(tmp_path, "--steps-this-run", 7)) == 0
    # As if the worker had been killed after step 7 and before its checkpoint.
    (tmp_path / "checkpoints" / "step-00000007").rename(tmp_path / "gone")
    (tmp_path / "restarts.json").unlink()
    (events,) = (tmp_path / "tensorboard").iterdir()
    events.rename(events.with_name("events.out.tfevents.0"))  # Sorted by the second of the start.
    assert run(flags.of(tmp_path)) == 0

    assert [each["step"] for each in named(tmp_path, "start")] == [0, 5]
    shown = accumulator.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [event.step for event in shown.Scalars("loss")] == list(range(1, flags.steps + 1))
    assert {"loss", "learning_rate", "tokens_per_second"} <= set(shown.Tags()["scalars"])


def test_run_is_not_continued_with_what_would_change_its_curve(
    run: Pretrain, flags: Flags, tmp_path: Path
) -> None:
    assert run(flags.of(tmp_path, "--steps-this-run", 1)) == 0
    changed = ["--seed", "5", "--lr", "0.5", "--global-batch", "16", "--dropout", "0.5"]

    with pytest.raises(TrainingError) as told:
        run([*flags.of(tmp_path), *changed])

    named_flags = [line.split(":")[0] for line in str(told.value).splitlines()]
    assert named_flags == ["--seed", "--lr", "--dropout", "--global-batch"]
    with pytest.raises(TrainingError, match="'never' would mix two runs"):
        run([*flags.of(tmp_path), "--resume", "never"])


def test_another_run_may_begin_with_a_checkpoint_and_a_schedule_of_its_own(
    run: Pretrain, flags: Flags, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    assert run(flags.of(first, "--steps-this-run", 3)) == 0
    checkpoint = first / "checkpoints" / "step-00000003"

    assert run(flags.of(second, "--resume", checkpoint, "--lr", 1e-4, "--steps-this-run", 1)) == 0

    assert named(second, "start")[0]["step"] == 3
    with pytest.raises(TrainingError, match="--resume: no checkpoint"):
        run(flags.of(tmp_path / "third", "--resume", tmp_path / "nowhere"))


@pytest.mark.parametrize(
    "more", [["--bf16"], ["--bf16", "--parallel", "fsdp"]], ids=["ddp", "fsdp"]
)
def test_bfloat16_stays_near_single_precision(
    run: Pretrain, flags: Flags, whole: dict[int, float], tmp_path: Path, more: list[str]
) -> None:
    assert run([*flags.of(tmp_path), *more]) == 0

    half = curve(tmp_path)
    assert half != whole
    assert half == pytest.approx(whole, rel=0.01)


def test_a_micro_batch_is_seeded_as_torch_does_without_a_stack_for_absent_devices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    torch.manual_seed(7)
    expected = torch.rand(3)
    monkeypatch.setattr(traceback, "format_stack", lambda: pytest.fail("a stack was written"))

    EagerDevice(torch.device("cpu")).seed(7)

    assert torch.equal(torch.rand(3), expected)


def test_collecting_graphs_leaves_nothing_that_could_be_taken_for_a_result(
    run: Pretrain, flags: Flags, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEURON_EXTRACT_GRAPHS_ONLY", "1")

    assert run(flags.of(tmp_path)) == 0

    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_collecting_graphs_disturbs_no_run_in_the_same_directory(
    run: Pretrain, flags: Flags, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The arguments of a precompile job are those of the run whose graphs it compiles."""
    assert run(flags.of(tmp_path, "--steps-this-run", 1)) == 0
    written = tmp_path / "checkpoints" / "partial-00000099-of-a-live-run"
    written.mkdir()
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setenv("NEURON_EXTRACT_GRAPHS_ONLY", "1")

    assert run(flags.of(tmp_path)) == 0

    assert sorted(tmp_path.rglob("*")) == before


def test_dataset_of_another_shape_is_refused(run: Pretrain, flags: Flags, tmp_path: Path) -> None:
    with pytest.raises(TrainingError) as told:
        run([*flags.of(tmp_path), "--seq-len", "128", "--max-pred-len", "20"])

    assert len(str(told.value).splitlines()) == 2
    assert events(tmp_path) == []


def test_output_directory_that_nodes_do_not_share_is_refused_before_anything_is_written_there(
    flags: Flags, tmp_path: Path
) -> None:
    nodes = [tmp_path / "n0", tmp_path / "n1"]
    for node in nodes:
        # Each has the directory, on a disk of its own.
        (node / "output" / "checkpoints").mkdir(parents=True)

    outcomes = [each.outcome() for each in start_workers(flags.of(Path("output")), nodes)]

    assert [status for status, _ in outcomes] == [2, 2]
    assert "1 workers do not see what the first one wrote there" in outcomes[0][1]
    assert not list(nodes[1].rglob("step-*"))


def test_loss_that_is_no_number_ends_the_run_before_it_is_saved(
    run: Pretrain, flags: Flags, tmp_path: Path
) -> None:
    diverging = [*flags.of(tmp_path), "--lr", "1e9", "--clip", "1e9"]
    # A device may have computed wrong: a restart tells.
    with pytest.raises(
        SuspectCheckpointError, match=r"the loss of step \d+ is nan: the next start"
    ):
        run(diverging)
    with pytest.raises(
        TrainingError, match=r"the loss of step \d+ is nan, again; the run diverges"
    ):
        run(diverging)

    saved = [int(path.name.removeprefix("step-")) for path in tmp_path.rglob("step-*")]
    finite = [step for step, loss in curve(tmp_path).items() if loss == loss]
    assert max(saved, default=0) <= max(finite)


def poisoned(model: Any, optimizer: Any) -> dict[str, Any]:
    """Return the state of a run whose weights were lost while it was copied."""
    return {
        name: torch.full_like(value, torch.nan)
        for name, value in tensors_of(model, optimizer).items()
    }


def test_a_checkpoint_that_leads_to_no_numbers_is_given_up_once_for_the_one_before(
    run: Pretrain, flags: Flags, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "output"
    assert run(flags.of(output, "--steps-this-run", 5)) == 0
    with monkeypatch.context() as patched:
        patched.setattr(training, "tensors_of", poisoned)
        assert run(flags.of(output, "--steps-this-run", 5)) == 0

    # A restart may help: torchrun counts it, and the one after that takes the one before.
    with pytest.raises(SuspectCheckpointError, match="step 11 is nan: the next start repeats it"):
        run(flags.of(output))
    with pytest.raises(SuspectCheckpointError, match="step 11 is nan, 1 steps after it resumed"):
        run(flags.of(output))
    assert run(flags.of(output)) == 0

    assert [each["step"] for each in named(output, "start")] == [0, 5, 10, 10, 5]
    # Of a step that was computed twice, both losses are the same.
    assert list(curve(output)) == list(range(1, flags.steps + 1))


def test_a_run_that_diverges_again_after_a_checkpoint_was_given_up_is_not_restarted(
    run: Pretrain, flags: Flags, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(training, "tensors_of", poisoned)
        assert run(flags.of(tmp_path, "--steps-this-run", 9)) == 0
    for _ in range(2):
        with pytest.raises(SuspectCheckpointError):
            run(flags.of(tmp_path))

    with pytest.raises(TrainingError, match=r"again: checkpoint bad-step-00000009 was set aside"):
        run(flags.of(tmp_path))


def test_full_disk_is_one_line_before_a_byte_is_written_and_no_restart_cures_it(
    run: Pretrain, flags: Flags, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.statvfs

    def filling(path: Path) -> os.statvfs_result:
        full = list(tmp_path.glob("checkpoints/step-*"))
        return os.statvfs_result([0 if full and n == 4 else v for n, v in enumerate(real(path))])

    monkeypatch.setattr(os, "statvfs", filling)
    with pytest.raises(TrainingError, match=r"the disk is full: checkpoints need .* MB") as told:
        run(flags.of(tmp_path))

    assert len(str(told.value).splitlines()) == 1
    (kept,) = (tmp_path / "checkpoints").iterdir()
    assert kept.name == f"step-{flags.checkpoint_every:08d}"


def test_disk_that_fills_up_while_a_checkpoint_is_written_leaves_the_ones_before(
    run: Pretrain, flags: Flags, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.open

    def open_until_full(path: Path, *mode: Any, **options: Any) -> Any:
        full = path.suffix == ".distcp" and path.parent.name.startswith("partial-00000010")
        return real(Path("/dev/full") if full else path, *mode, **options)

    monkeypatch.setattr(Path, "open", open_until_full)
    with pytest.raises(TrainingError, match=r"the disk is full: .*No space left on device"):
        run(flags.of(tmp_path))

    (kept,) = (tmp_path / "checkpoints").iterdir()
    assert kept.name == f"step-{flags.checkpoint_every:08d}"


def test_run_goes_on_from_the_memory_of_nodes_where_that_is_newer_than_the_disk(
    run: Pretrain, flags: Flags, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("amzn_sagemaker_checkpointing", reason="run `make training`")
    output = tmp_path / "output"
    with running_memory_service() as service:
        monkeypatch.setenv("ULTRASCALE_MEMORY_URL", service.url)
        arguments = flags.of(output, "--memory-every", 2)
        assert run([*arguments, "--steps-this-run", "9"]) == 0
        # As if it had been killed before the last save.
        shutil.rmtree(output / "checkpoints" / "step-00000009")
        assert run(arguments) == 0

    assert [each["step"] for each in named(output, "start")] == [0, 8]
    # Of the step that was computed twice, both losses are the same.
    assert list(curve(output)) == list(range(1, flags.steps + 1))


def test_other_data_is_refused_on_resume_unless_it_is_accepted(
    run: Pretrain, flags: Flags, tmp_path: Path
) -> None:
    output, data = tmp_path / "output", tmp_path / "data"
    shutil.copytree(flags.data, data)
    mine = replace(flags, data=data)
    assert run(mine.of(output, "--steps-this-run", 1)) == 0
    shard = sorted(data.glob("*.npy"))[0]
    shard.write_bytes(shard.read_bytes()[:-8] + bytes(8))

    with pytest.raises(TrainingError, match=r"--data-dir: the data of .*step-00000001 differs"):
        run(mine.of(output))
    assert run(mine.of(output, "--accept-new-data", "--steps-this-run", 1)) == 0


def test_run_without_a_restart_left_is_refused_until_its_file_is_deleted(
    run: Pretrain, flags: Flags, tmp_path: Path
) -> None:
    ledger = tmp_path / "restarts.json"
    ledger.write_text(json.dumps({"left": 0.5, "step": 0, "running": {"nodes": 1}}))

    with pytest.raises(TrainingError, match="no restart is left"):
        run(flags.of(tmp_path))

    ledger.unlink()
    assert run(flags.of(tmp_path, "--steps-this-run", 1)) == 0
    assert json.loads(ledger.read_text())["ended"] == "done"


def test_run_whose_newest_checkpoint_is_gone_trains_no_paid_step_again_without_a_word(
    run: Pretrain, flags: Flags, tmp_path: Path
) -> None:
    assert run(flags.of(tmp_path, "--steps-this-run", 6)) == 0
    shutil.rmtree(tmp_path / "checkpoints" / "step-00000006")

    with pytest.raises(TrainingError, match="6 steps are saved, and the newest checkpoint has 5"):
        run(flags.of(tmp_path))


def test_metrics_are_lines_of_json(run: Pretrain, flags: Flags, tmp_path: Path) -> None:
    assert run(flags.of(tmp_path, "--log-every", 4)) == 0

    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    found = [json.loads(line)["event"] for line in lines]
    assert set(found) == {"start", "step", "checkpoint", "done"}
    # Every fourth one, and those that were saved.
    assert list(curve(tmp_path)) == [4, 5, 8, 10, 12]


@pytest.mark.parametrize("name", ["arguments", "prepare_data", "pretrain"])
def test_former_name_of_a_program_still_runs_it(name: str, tmp_path: Path) -> None:
    """Job files have it, and a cache of graphs is of the command that it is part of."""
    program = forked.start(
        f"ultrascale_training.{name}", ["--help"], environment=ENVIRONMENT, output=tmp_path / "log"
    )

    assert program.wait(120) == 0
    assert "usage: python -m ultrascale_bert." in (tmp_path / "log").read_text()
