"""Options that `submit` knows, held against the parsers that would refuse them on the nodes."""

import argparse
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import tyro
from torchtitan.config.manager import ConfigManager, custom_registry

from ultrascale import config
from ultrascale.parts.recipes.options import (
    FLAG,
    NO_EFFECT,
    NUMBERS,
    SUBCOMMAND,
    known_options,
    mistaken_words,
)
from ultrascale_training.errors import TrainingError
from ultrascale_training.titan import arguments
from ultrascale_training.titan.configuration import configuration

# Help, and fields of our own configuration.
_NO_OPTIONS = {"-h", "--recipe"}


def run_of(data: Path, recipe: str, words: Sequence[str] = ()) -> Sequence[str]:
    return [f"--recipe={recipe}", f"--data={data}", "--output-dir=/tmp/out", *words]


def parser_of(data: Path, recipe: str) -> argparse.ArgumentParser:
    """Return the parser that TorchTitan has for a recipe."""
    ConfigManager()
    base = configuration(arguments.parse(run_of(data, recipe)))
    with warnings.catch_warnings():
        # Nothing takes its place yet.
        warnings.simplefilter("ignore", DeprecationWarning)
        return tyro.extras.get_parser(type(base), default=base, registry=custom_registry)


def kind_of(action: argparse.Action) -> str:
    """Return how the record writes the value of an option."""
    if action.nargs == 0:
        return FLAG
    if action.choices is not None:
        return "|".join(map(str, action.choices))
    if action.nargs == "*":
        return "FLOAT*" if "FLOAT" in str(action.metavar) else "STR*"
    kind = str(action.metavar).replace("{None}", "None")
    return "STR" if kind == "A,B,C,..." else kind


def without_bounds(kind: str) -> str:
    """Return the kind that a parser has; TorchTitan checks bounds by itself."""
    return re.sub(r"(-1\|)?INT>=\d+", "INT", kind)


def verdict_of(data: Path, option: str) -> str | None:
    """Return what the program says of an option of TorchTitan; None where it hands it on."""
    try:
        arguments.parse(run_of(data, "llama3-8b", [f"{option}=1"]))
    except TrainingError as error:
        used = re.search(r"; use (--[a-z-]+)", str(error))
        return used[1] if used else NO_EFFECT
    return None


def options_of(data: Path, recipe: str) -> Iterator[tuple[str, str]]:
    """Yield TorchTitan's options for a recipe, with the kind of their values."""
    for action in parser_of(data, recipe)._actions:  # pyright: ignore[reportPrivateUsage]
        # A switch has two names, of which the second one turns it off.
        option = next(iter(action.option_strings), "-h")
        if option in _NO_OPTIONS:
            continue
        key = option.removeprefix("--").replace("-", "_") if "." in option else option
        yield key, verdict_of(data, option) or kind_of(action)


@pytest.mark.parametrize("recipe", ["llama3-8b", "llama3-405b", "qwen3-30b-a3b"])
def test_the_record_of_options_is_what_the_installed_torchtitan_takes(
    recipe: str, data: Path
) -> None:
    found = dict(options_of(data, recipe))
    # `tests/plan/recipes` holds the other flags against the program's own parser.
    recorded = known_options().items()
    shared = {name: without_bounds(kind) for name, kind in recorded if "." in name or name in found}

    assert found == shared


def test_subcommands_of_the_installed_torchtitan_begin_as_recorded(data: Path) -> None:
    [commands] = [
        action.choices
        for action in parser_of(data, "llama3-8b")._actions  # pyright: ignore[reportPrivateUsage]
        if not action.option_strings and action.choices is not None
    ]

    assert {*commands}
    assert {each for each in commands if not each.startswith(SUBCOMMAND)} == set()


VALUES = {
    FLAG: ["", "=true"],
    "INT": ["=3", "=1_000", "=1e3", "=x", "=", " 3", " 3 4"],
    "INT>=1": ["=1", "=x", "=", " 1", " 0", " -1"],
    "-1|INT>=1": ["=1", "=x", " -1", "=-2"],
    "FLOAT": ["=3", "=1e-4", "=x", " 0.5", " -0.5", " x"],
    "FLOAT|INT": ["=3", "=0.5", "=x"],
    "None|INT": ["=None", "=none", " -3", "=0.5"],
    "None|FLOAT": ["=None", "=3", "=0.5", "=x"],
    "None|STR": ["=None", "=x"],
    "STR": ["=x", "=", "", " x", " x y"],
    "FLOAT*": [" 0.9 0.95", "=0.9 0.95", "=0.9,0.95", " 0.9 x"],
}


def refused_at_start(words: Sequence[str], data: Path) -> bool:
    """Return whether the program or TorchTitan refuses some words."""
    try:
        configuration(arguments.parse(run_of(data, "llama3-toy", words)))
    except TrainingError:
        return True
    return False


def cases() -> Iterator[tuple[str, ...]]:
    """Yield words for one option of each kind, and for those that no parser takes."""
    seen: set[str] = set()
    for name, kind in known_options().items():
        if "." not in name or kind in seen or kind == NO_EFFECT or kind.startswith("--"):
            continue
        seen.add(kind)
        given = VALUES.get(kind, [f"={kind.split('|')[0]}", "=x"])
        yield tuple(f"--{name.replace('_', '-')}{given[0]}".split(" "))
        yield from (tuple(f"--{name}{value}".split(" ")) for value in given)
    # Degrees and batches have rules of their own.
    for name, kind in known_options().items():
        if "." in name and "INT" in kind and name not in NUMBERS:
            yield from ((f"--{name}={value}",) for value in (-1, 0))
    yield ("--optimizer.lr=1e-4",)
    yield ("--optimizer.param_groups.1.optimizer_kwargs.lr=1e-4",)
    yield ("--compile.no_enable",)
    yield ("--compile.no-enable",)
    yield ("--training.no_steps",)
    yield ("--Training.steps=5",)
    yield ("--training.step=5",)
    yield ("--training.steps=5", "steps")
    yield ("activation-checkpoint:full",)
    yield ("activation-checkpoint:half",)
    yield ("--metrics.enable_wandb",)
    yield ("--checkpoint.folder=x",)
    yield ("--dump-folder=x",)
    yield ("--lr=1e-4",)


@pytest.mark.parametrize("words", [*cases()], ids=" ".join)
def test_submit_refuses_what_the_program_would_and_nothing_else(
    words: tuple[str, ...], data: Path
) -> None:
    mistakes: list[config.Mistake] = [*mistaken_words(words)]

    assert bool(mistakes) == refused_at_start(words, data)
