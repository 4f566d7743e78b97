"""Options of a recipe in a job's arguments: those of TorchTitan, and flags of our own program."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import takewhile
from pathlib import Path
from types import MappingProxyType
from typing import get_args

from msgspec import field

from ultrascale import config
from ultrascale.frozen import Frozen
from ultrascale.parts.recipes.table import Recomputation

RECOMPUTATION = "--activation-checkpoint"
DATA, CONFIG, RECIPE = "--data", "--config", "--recipe"
KEEP, KEPT = "--keep", 3  # Checkpoints that stay, and their default
INTERVAL = "--checkpoint.interval"  # In steps
FOLDER, SAVES = "--dump_folder", "checkpoint.enable"
"""Folder of TorchTitan's own checkpoints, and whether it writes any.

Source: https://github.com/pytorch/torchtitan/blob/v0.3.0/torchtitan/trainer.py and
https://github.com/pytorch/torchtitan/blob/v0.3.0/torchtitan/components/checkpointer/base.py; that
TorchTitan Neuron has them too is [inferred].
"""

TENSOR = "parallelism.tensor_parallel_degree"
PIPELINE = "parallelism.pipeline_parallel_degree"
CONTEXT = "parallelism.context_parallel_degree"
EXPERT = "parallelism.expert_parallel_degree"
SHARD = "parallelism.data_parallel_shard_degree"
REPLICATE = "parallelism.data_parallel_replicate_degree"
MICROBATCH = "parallelism.pipeline_parallel_microbatch_size"
LOCAL_BATCH = "training.local_batch_size"
GLOBAL_BATCH = "training.global_batch_size"
SEQUENCE = "training.seq_len"
STEPS = "training.steps"
COMPILE, NOT_COMPILED = "compile.enable", "compile.no_enable"
MATRICES, FLOAT8 = "--matmul", "float8"
"""Flag of the numbers that matrices are multiplied in, and its value for 8 bits."""
NO_GRAPHS = "training.disable_cuda_graphs"
THE_REST = -1
"""TorchTitan's word for the devices that are left."""

DEGREES = (TENSOR, PIPELINE, CONTEXT, REPLICATE, SHARD)
"""Options that divide the devices among them."""
NUMBERS = (*DEGREES, EXPERT, MICROBATCH, LOCAL_BATCH, GLOBAL_BATCH, SEQUENCE, STEPS)


# Options of TorchTitan's own, and flags of the program that starts it, as read from their parsers;
# tests compare the file with the installed release. TorchTitan Neuron has a parser of its own,
# which is not recorded.
# Source: https://github.com/pytorch/torchtitan/blob/v0.3.0/torchtitan/config/manager.py
_OPTIONS_FILE = Path(__file__).parent / "torchtitan_options.txt"

FLAG = "FLAG"
"""Kind of an option without a value; TorchTitan turns such an option off as `--section.no_key`."""

FOLDER_KIND = "FOLDER"
"""Kind of an option that takes a folder of a mounted file system, not a URI."""

NO_EFFECT = "-"
"""Kind of an option without effect: our program replaces the part of TorchTitan that reads it."""

SUBCOMMAND = "activation-checkpoint:"
"""Prefix of the names of subcommands, after which TorchTitan takes further options."""


class Option(Frozen):
    """An option among a job's arguments: where it stands, and its value."""

    at: int
    value: str


class Options(Frozen, kw_only=False):
    """Options in a job's arguments; the last of a name wins, as in TorchTitan."""

    # Options by name: `training.steps` of TorchTitan, `--data` of our own program.
    by_name: Mapping[str, Option] = field(default_factory=dict[str, Option])

    def __contains__(self, name: str) -> bool:
        return name in self.by_name

    def get(self, name: str) -> Option | None:
        """Return an option; None where the arguments do not have it."""
        return self.by_name.get(name)

    def number(self, name: str, default: int) -> int:
        """Return the value of an option that is a whole number."""
        return int(self.by_name[name].value) if name in self.by_name else default

    @property
    def names_folder(self) -> bool:
        """Whether TorchTitan's own folder is stated."""
        return FOLDER in self.by_name or FOLDER.replace("_", "-") in self.by_name

    @property
    def keeps_layout(self) -> bool:
        """Whether no option changes how a model is divided."""
        return self.by_name.keys().isdisjoint((*NUMBERS, RECOMPUTATION))

    @property
    def recomputation(self) -> Recomputation | None:
        """Activations that are computed again; None where nothing valid says it."""
        option = self.get(RECOMPUTATION)
        known: Mapping[str, Recomputation] = {kind: kind for kind in get_args(Recomputation)}
        return None if option is None else known.get(option.value)


def read(args: Sequence[str]) -> Options:
    """Return the options in ``args``.

    `--training.steps=5` and `--training.steps 5` are the same, and so are `-` and `_` in the names
    of TorchTitan's.
    """
    by_name: dict[str, Option] = {}
    for number, word in enumerate(args):
        if not word.startswith("--"):
            continue
        name, equals, value = word.partition("=")
        follows = args[number + 1] if number + 1 < len(args) else ""
        by_name[_key(name)] = Option(at=number, value=value if equals else follows)
    return Options(by_name)


@cache
def known_options() -> Mapping[str, str]:
    """Return the kind of each option's value, by option such as `training.steps` or `--data`.

    A kind is `FLAG`, `NO_EFFECT`, the flag of the program that takes the option's place, or the
    alternatives for a value: `INT`, `INT>=1` with a bound, `FLOAT`, `STR`, `FOLDER` and words.
    A `*` at its end means several.
    """
    lines = _OPTIONS_FILE.read_text(encoding="utf-8").splitlines()
    return MappingProxyType(dict(line.split(" ") for line in lines))


def mistaken_numbers(options: Options) -> Iterator[config.Mistake]:
    """Yield degrees and batches that are no numbers."""
    for name, option in options.by_name.items():
        low = THE_REST if name == SHARD else 1
        if name not in NUMBERS:
            continue
        if not re.fullmatch(r"-?\d+", option.value) or int(option.value) < low:
            problem = f"not a value of --{name}"
            yield config.refuse(f"args.{option.at}", problem, "write a whole number from 1 on")


def mistaken_words(args: Sequence[str]) -> Iterator[config.Mistake]:
    """Yield arguments that TorchTitan, or the program of ours that starts it, would refuse."""
    at = 0
    while at < len(args):
        word, place = args[at], f"args.{at}"
        following = [*takewhile(lambda after: not after.startswith("--"), args[at + 1 :])]
        name, equals, value = word.partition("=")
        kind = _kind(_key(name))
        if word.startswith(SUBCOMMAND):
            taken = 0
            problem = "a subcommand of TorchTitan that the program replaces by a flag"
            kinds = _kind(RECOMPUTATION).split("|")
            stated = word.removeprefix(SUBCOMMAND)
            known = [stated] if stated in kinds else kinds
            yield config.refuse(place, problem, f"use {RECOMPUTATION}={' or '.join(known)}")
        elif not word.startswith("--"):
            taken = 0
            problem = "neither an option nor the value of one"
            yield config.refuse(place, problem, "write options as --section.key=value")
        elif kind in (FLAG, NO_EFFECT) or kind.startswith("--"):
            taken = 0
            yield from _mistaken_switch(place, name, kind, has_value=bool(equals))
        elif not kind:
            taken = 0 if equals else 1
            problem = "not an option of TorchTitan 0.3.0 or of the program that starts it"
            yield config.refuse(place, problem, _nearest(_key(name)))
        else:
            several = kind.endswith("*")
            taken = len(following) if several else 0 if equals else 1
            values = [value, *following[:taken]] if equals else following[:taken]
            if _key(name) not in NUMBERS:
                yield from _mistaken_values(place, name, kind.removesuffix("*"), values)
        at += 1 + min(taken, len(following))


def _mistaken_switch(
    place: str, name: str, kind: str, *, has_value: bool
) -> Iterator[config.Mistake]:
    if kind.startswith("--"):
        problem = "an option of TorchTitan that the program replaces by a flag"
        yield config.refuse(place, problem, f"use {kind}")
    elif kind == NO_EFFECT:
        problem = "an option without effect: the program has checkpoints and metrics of its own"
        yield config.refuse(place, problem, "leave it out")
    elif has_value:
        off = f", or {name.replace('.', '.no_', 1)} to turn it off" if "." in name else ""
        yield config.refuse(place, f"{name} takes no value", f"write {name}{off}")


def _mistaken_values(
    place: str, name: str, kind: str, values: Sequence[str]
) -> Iterator[config.Mistake]:
    kinds = kind.split("|")
    if not values:
        yield config.refuse(place, f"{name} without a value", f"write {name}=VALUE")
    # Kubernetes puts the value of a variable in the place of $(NAME).
    elif any(
        "$(" not in text and not any(is_of_kind(text, known) for known in kinds) for text in values
    ):
        known = [*map(_in_words, kinds)]
        todo = f"use {', '.join(kinds)}" if known == kinds else f"write {' or '.join(known)}"
        yield config.refuse(place, f"not a value of {name}", todo)


def _in_words(kind: str) -> str:
    """Return what a value of a kind is; the kind where it is a word itself."""
    kind, _, lowest = kind.partition(">=")
    if lowest:
        return f"a whole number from {lowest} on"
    return {
        "INT": "a whole number",
        "FLOAT": "a number",
        "STR": "a value",
        FOLDER_KIND: "a folder that all nodes mount, and copy it from there",
    }.get(kind, kind)


def is_of_kind(value: str, kind: str) -> bool:
    """Return whether a value is of a kind, by the rules of Python, as in TorchTitan."""
    kind, _, lowest = kind.partition(">=")
    with suppress(ValueError):
        if kind == "INT":
            number = int(value)
            return not lowest or number >= int(lowest)
        if kind == "FLOAT":
            # A run would start with it, and its loss would be no number.
            return not math.isnan(float(value))
        if kind == FOLDER_KIND:
            return "://" not in value
        if kind == "BOOL":
            return value.lower() in ("true", "false", "1", "0", "yes", "no")
        return kind in ("STR", value)
    return False


def _kind(name: str) -> str:
    """Return the kind of an option's value; empty for one that there is not."""
    known = known_options()
    positive = name.replace(".no_", ".", 1)
    if name not in known and known.get(positive) == FLAG:
        return FLAG
    return known.get(name, "")


def _nearest(name: str) -> str:
    """Return the option that an unknown one was meant to be, or the names that there are."""
    taken = {
        f"--{known}" if "." in known else known
        for known, kind in known_options().items()
        if kind != NO_EFFECT and not kind.startswith("--")
    }
    stated = f"--{name}" if "." in name else name
    last = stated.removeprefix("--").rpartition(".")[2].replace("-", "_")
    same = [known for known in taken if "." in known and known.rpartition(".")[2] == last]
    if len(same) == 1:
        return f"did you mean {same[0]}?"
    alike = {known for known in taken if ("." in known) == ("." in stated)}
    sections = {f"{known.partition('.')[0]}." for known in alike if "." in known}
    return config.near(stated, alike, sections)


def _key(word: str) -> str:
    """Return the name that an option is known by: TorchTitan's own has a dot."""
    return word.removeprefix("--").replace("-", "_") if "." in word else word
