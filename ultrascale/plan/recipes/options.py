"""Options of a recipe in a job's arguments: those of TorchTitan, and flags of our own program."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import get_args

from ultrascale import config
from ultrascale.catalog import torchtitan
from ultrascale.catalog.recipes import Recomputation

RECOMPUTATION = "--activation-checkpoint"
DATA, WEIGHTS, CONFIG = "--data", "--load", "--config"
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
COMPILE = "compile.enable"
NO_GRAPHS = "training.disable_cuda_graphs"
THE_REST = -1
"""TorchTitan's word for the devices that are left."""

DEGREES = (TENSOR, PIPELINE, CONTEXT, REPLICATE, SHARD)
"""Options that divide the devices among them."""
_NUMBERS = (*DEGREES, EXPERT, MICROBATCH, LOCAL_BATCH, GLOBAL_BATCH, SEQUENCE, STEPS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An option among a job's arguments: where it stands, and its value."""

    at: int
    value: str


@dataclass(frozen=True, slots=True)
class Options:
    """Options in a job's arguments; the last of a name wins, as in TorchTitan.

    Attributes:
        found: Options by name: `training.steps` of TorchTitan, `--data` of our own program.
    """

    found: Mapping[str, Option] = field(default_factory=dict[str, Option])

    def __contains__(self, name: str) -> bool:
        return name in self.found

    def get(self, name: str) -> Option | None:
        """Return an option; None where the arguments do not have it."""
        return self.found.get(name)

    def number(self, name: str, default: int) -> int:
        """Return the value of an option that is a whole number."""
        return int(self.found[name].value) if name in self.found else default

    @property
    def names_folder(self) -> bool:
        """Whether TorchTitan's own folder is stated."""
        return FOLDER in self.found or FOLDER.replace("_", "-") in self.found

    @property
    def keeps_layout(self) -> bool:
        """Whether no option changes how a model is divided."""
        return self.found.keys().isdisjoint((*_NUMBERS, RECOMPUTATION))

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
    found: dict[str, Option] = {}
    for number, word in enumerate(args):
        if not word.startswith("--"):
            continue
        name, equals, value = word.partition("=")
        follows = args[number + 1] if number + 1 < len(args) else ""
        found[_key(name)] = Option(at=number, value=value if equals else follows)
    return Options(found)


def mistaken_numbers(options: Options) -> Iterator[config.Mistake]:
    """Yield degrees and batches that are no numbers."""
    for name, option in options.found.items():
        low = THE_REST if name == SHARD else 1
        if name not in _NUMBERS:
            continue
        if not re.fullmatch(r"-?\d+", option.value) or int(option.value) < low:
            wrong = f"not a value of --{name}"
            yield config.refuse(f"args.{option.at}", wrong, "write a whole number from 1 on")


def mistaken_words(options: Options) -> Iterator[config.Mistake]:
    """Yield options that neither TorchTitan nor our own program has."""
    for name, option in options.found.items():
        known = _known_beside(name)
        if name in known or _positive(name) in known:
            continue
        shown = {word if word.startswith("--") else f"--{word}" for word in known}
        stated = name if name.startswith("--") else f"--{name}"
        wrong = "not an option of TorchTitan 0.3.0 or of the program that starts it"
        yield config.refuse(f"args.{option.at}", wrong, config.near(stated, shown))
    option = options.get(RECOMPUTATION)
    if option is not None and options.recomputation is None:
        todo = f"use {', '.join(get_args(Recomputation))}"
        yield config.refuse(f"args.{option.at}", f"not a value of {RECOMPUTATION}", todo)


def _key(word: str) -> str:
    """Return the name that an option is known by: TorchTitan's own has a dot."""
    return word.removeprefix("--").replace("-", "_") if "." in word else word


def _known_beside(name: str) -> frozenset[str]:
    """Return the names that ``name`` is one of, or should have been."""
    section, dot, _ = name.partition(".")
    if not dot:
        return torchtitan.FLAGS
    if section not in torchtitan.SECTIONS:
        return frozenset({f"{known}." for known in torchtitan.SECTIONS})
    options = torchtitan.OPTIONS.get(section)
    # Those of other sections depend on the model; TorchTitan judges them when it starts.
    return frozenset({name}) if options is None else frozenset(f"{section}.{o}" for o in options)


def _positive(name: str) -> str:
    """Return a name without the `no_` by which TorchTitan turns an option off."""
    return name.replace(".no_", ".", 1)
