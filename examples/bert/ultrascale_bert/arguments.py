"""The command line of ``python -m ultrascale_bert.pretrain``.

``python -m ultrascale_bert.arguments`` reports the mistakes of one, without torch.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn

from ultrascale_training.errors import TrainingError

Device = Literal["auto", "cpu", "cuda", "neuron-xla"]
Parallel = Literal["ddp", "fsdp"]

MODELS = ("tiny", "mini", "small", "base", "large")
# Positions of the published models.
LONGEST_SEQUENCE = 512


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """A run as its user asked for it; `docs/training.md` explains each flag."""

    model: str
    data_dir: Path
    output_dir: Path
    batch_size: int
    grad_accum_usteps: int | None
    global_batch: int | None
    max_steps: int
    steps_this_run: int | None
    lr: float
    warmup_steps: int
    weight_decay: float
    clip: float
    dropout: float
    seed: int
    seq_len: int | None
    max_pred_len: int | None
    bf16: bool
    parallel: Parallel
    device: Device
    checkpoint_dir: str
    records: str
    checkpoint_every: int
    memory_every: int
    keep: int
    save_async: bool
    resume: str
    accept_new_data: bool
    nan_steps: int
    log_every: int
    timeout_seconds: int


def parse(arguments: Sequence[str] | None = None) -> Arguments:
    """Return the arguments of the command line, of ``sys.argv`` if None.

    Raises:
        TrainingError: With every mistake, one a line.
    """
    parser = _Parser(
        prog="python -m ultrascale_bert.pretrain",
        description="Pre-train BERT: masked language model and next-sentence prediction.",
        allow_abbrev=False,
    )
    _add_data(parser)
    _add_batch(parser)
    _add_schedule(parser)
    _add_machine(parser)
    _add_checkpoints(parser)
    values, unknown = parser.parse_known_args(arguments)
    mistakes = [f"{flag}: no such flag; see --help" for flag in unknown]
    given = vars(values)
    for name, value in given.items():
        if isinstance(value, _Refused):
            mistakes.append(f"{flag_of(name)}: {value.wanted}, got {value.got!r}")
    _place_output(values)
    mistakes += _missing(values.data_dir, values.output_dir)
    if not mistakes:
        parsed = Arguments(**given)
        mistakes = list(_contradictions(parsed))
        if not mistakes:
            return parsed
    raise TrainingError("\n".join(mistakes))


def flag_of(name: str) -> str:
    """Return the flag that sets the attribute ``name``."""
    return f"--{name.replace('_', '-')}"


def _missing(data_dir: Path | None, output_dir: Path | None) -> Iterator[str]:
    if data_dir is None:
        yield "--data-dir: missing; name the directory that prepare_data wrote"
    if output_dir is None:
        yield (
            "--output-dir: missing; name a directory that every node sees, such as /data/output, "
            "or a bucket, s3://BUCKET/PREFIX"
        )


def _place_output(values: argparse.Namespace) -> None:
    """Fill in where the output and the checkpoints go, from the environment and each other.

    A job of ours gets its durable place in ``ULTRASCALE_OUTPUT``. Files that grow line by line
    cannot be written to a bucket, so everything but checkpoints stays on the node then.
    """
    output = values.output_dir or os.environ.get("ULTRASCALE_OUTPUT") or None
    values.records = None if output is None else str(output).rstrip("/")
    if isinstance(output, str) and output.startswith("s3://"):
        values.checkpoint_dir = values.checkpoint_dir or f"{output.rstrip('/')}/checkpoints"
        output = Path(tempfile.gettempdir()) / "ultrascale-output"
    values.output_dir = None if output is None else Path(output)
    if values.checkpoint_dir is None and values.output_dir is not None:
        values.checkpoint_dir = str(values.output_dir / "checkpoints")


def _contradictions(parsed: Arguments) -> Iterator[str]:
    if parsed.global_batch is not None and parsed.grad_accum_usteps is not None:
        yield (
            "--global-batch and --grad-accum-usteps: give one of them; the first is the second "
            "times --batch-size times the workers of the first start"
        )
    if parsed.global_batch is not None and parsed.global_batch % parsed.batch_size:
        yield (
            f"--global-batch: must be a multiple of --batch-size {parsed.batch_size}, "
            f"got {parsed.global_batch}"
        )
    if parsed.warmup_steps >= parsed.max_steps:
        yield (
            f"--warmup-steps: must be below --max-steps {parsed.max_steps}, "
            f"got {parsed.warmup_steps}"
        )
    if parsed.device == "neuron-xla" and parsed.parallel == "fsdp":
        yield (
            "--parallel: fsdp needs a device that torch's fully_shard knows, and neuron-xla is "
            "none; use ddp"
        )


@dataclass(frozen=True, kw_only=True)
class _Refused:
    got: str
    wanted: str


def _number(
    convert: Callable[[str], float], wanted: str, *, lowest: float, most: float = float("inf")
) -> Callable[[str], float | _Refused]:
    def read(text: str) -> float | _Refused:
        try:
            number = convert(text)
        except ValueError:
            return _Refused(got=text, wanted=wanted)
        return number if lowest <= number <= most else _Refused(got=text, wanted=wanted)

    return read


_COUNT = _number(int, "must be a whole number from 1 on", lowest=1)
_INDEX = _number(int, "must be a whole number from 0 on", lowest=0)
_RATE = _number(float, "must be a number above 0", lowest=5e-324, most=1e9)
_DECAY = _number(float, "must be a number from 0 to 1", lowest=0, most=1)
_DROPOUT = _number(float, "must be a number from 0 to 0.9", lowest=0, most=0.9)
_LENGTH = _number(
    int, f"must be a whole number from 8 to {LONGEST_SEQUENCE}", lowest=8, most=LONGEST_SEQUENCE
)


def _choice(*names: str) -> Callable[[str], str | _Refused]:
    def read(text: str) -> str | _Refused:
        return text if text in names else _Refused(got=text, wanted=f"must be {' or '.join(names)}")

    return read


class _Parser(argparse.ArgumentParser):
    """Takes every flag with dashes, and with the underscores of the AWS tutorial."""

    def flag(self, name: str, **options: Any) -> None:
        spellings = dict.fromkeys((f"--{name}", f"--{name.replace('-', '_')}"))
        self.add_argument(*spellings, **options)

    def error(self, message: str) -> NoReturn:
        """Report argparse's own refusals like every other mistake."""
        raise TrainingError(message)


def _add_data(parser: _Parser) -> None:
    parser.flag("model", type=_choice(*MODELS), default="large", help="size of BERT")
    parser.flag("data-dir", type=Path, help="dataset, ours or the tutorial's HDF5 shards")
    parser.flag(
        "output-dir",
        type=str,
        help="checkpoints and metrics, seen by every node (default: $ULTRASCALE_OUTPUT)",
    )
    parser.flag("seq-len", type=_LENGTH, help="fail unless the dataset has this length")
    parser.flag("max-pred-len", type=_COUNT, help="fail unless the dataset has this many")


def _add_batch(parser: _Parser) -> None:
    parser.flag("batch-size", type=_COUNT, default=8, help="rows of a worker's micro-batch")
    parser.flag(
        "grad-accum-usteps",
        type=_COUNT,
        help="micro-batches of a worker and step, at the first start (default 1)",
    )
    parser.flag("global-batch", type=_COUNT, help="rows of a step, instead of the former")


def _add_schedule(parser: _Parser) -> None:
    parser.flag("max-steps", type=_COUNT, default=28125, help="steps of the whole training")
    parser.flag("steps-this-run", type=_COUNT, help="stop with a checkpoint after so many steps")
    parser.flag("lr", type=_RATE, default=4e-4, help="learning rate after warm-up")
    parser.flag("warmup-steps", type=_INDEX, default=2000, help="steps of linear warm-up")
    parser.flag("weight-decay", type=_DECAY, default=0.01, help="of matrices, not of biases")
    parser.flag("clip", type=_RATE, default=1.0, help="largest norm of the gradient")
    parser.flag("dropout", type=_DROPOUT, default=0.1, help="probability")
    parser.flag("seed", type=_INDEX, default=12349, help="of initialization, order and dropout")


def _add_machine(parser: _Parser) -> None:
    parser.flag("device", type=_choice("auto", "cpu", "cuda", "neuron-xla"), default="auto")
    parser.flag("parallel", type=_choice("ddp", "fsdp"), default="ddp")
    parser.flag("bf16", action=argparse.BooleanOptionalAction, default=False)
    parser.flag("log-every", type=_COUNT, default=10, help="steps between two lines of metrics")
    parser.flag(
        "timeout-seconds",
        type=_COUNT,
        default=600,
        help="a collective that takes longer ends the worker",
    )


def _add_checkpoints(parser: _Parser) -> None:
    parser.flag("checkpoint-every", type=_COUNT, default=100, help="steps between checkpoints")
    parser.flag(
        "memory-every",
        type=_INDEX,
        default=0,
        help="steps between checkpoints in the memory of HyperPod's nodes (default: none)",
    )
    parser.flag("keep", type=_COUNT, default=2, help="checkpoints that are kept")
    parser.flag("save-async", action=argparse.BooleanOptionalAction, default=True)
    parser.flag("resume", default="auto", help="auto, never, or the path of a checkpoint")
    parser.flag(
        "checkpoint-dir",
        type=str,
        help="directory or s3://BUCKET/PREFIX of the checkpoints (default: in --output-dir)",
    )
    parser.flag(
        "accept-new-data",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="resume although data, tokenizer or order are not those of the checkpoint",
    )
    parser.flag(
        "nan-steps",
        type=_INDEX,
        default=100,
        help="steps after a resume in which a loss that is no number counts as a bad checkpoint",
    )


if __name__ == "__main__":
    try:
        parse()
    except TrainingError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
