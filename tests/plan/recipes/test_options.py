"""Options that a job with a recipe may have, by the programs that take them."""

import argparse

import pytest

from ultrascale.parts.recipes.options import (
    FLAG,
    FOLDER_KIND,
    RECOMPUTATION,
    known_options,
    mistaken_words,
)
from ultrascale.parts.recipes.table import RECIPES
from ultrascale_training.errors import TrainingError
from ultrascale_training.titan import arguments, recipes

RATE = "--optimizer.param_groups.0.optimizer_kwargs.lr"
NO_OPTION = "not an option of TorchTitan 0.3.0 or of the program that starts it"
SUBCOMMAND = "a subcommand of TorchTitan that the program replaces by a flag"


def kind_of(action: argparse.Action) -> str:
    """Return how the record writes the value of a flag."""
    if action.nargs == 0:
        return FLAG
    if action.choices is not None:
        return "|".join(action.choices)
    kinds: dict[object, str] = {int: "INT", float: "FLOAT"}
    return kinds.get(action.type, "STR")


def without_bounds(kind: str) -> str:
    """Return the kind that a parser has; the program checks bounds by itself."""
    return kind.partition(">=")[0].replace(FOLDER_KIND, "STR")


def test_flags_of_the_program_are_recorded_with_the_kind_of_their_value() -> None:
    """`tests/titan` holds TorchTitan's own options against its parser."""
    actions = arguments._parser()._actions  # pyright: ignore[reportPrivateUsage]
    flags = {action.option_strings[-1]: kind_of(action) for action in actions}
    recorded = {
        name: without_bounds(kind) for name, kind in known_options().items() if "." not in name
    }

    of_torchtitan = {"--dump-folder": "--output-dir", "--hf-assets-path": "--load"}
    only_printing = {"--help": FLAG, "--list": FLAG}
    assert flags | of_torchtitan == recorded | only_printing


BOUNDED = [
    f"{name}={value}"
    for name, kind in known_options().items()
    if name.startswith("--") and without_bounds(kind) in ("INT", "STR") and name != "--recipe"
    for value in (-4, -1, 0, 1, 2, 3, "s3://bucket/a", "/data/a")
]


@pytest.mark.parametrize("word", BOUNDED)
def test_submit_has_the_bounds_of_the_program(word: str) -> None:
    """A node that is paid for refuses a value that submit does not know to be wrong."""
    run = ["--recipe=llama3-8b", "--data=/data/tokens", "--output-dir=/data/out"]

    try:
        arguments.parse([*run, word])
    except (TrainingError, SystemExit):
        assert [*mistaken_words([word])]
    else:
        assert not [*mistaken_words([word])]


def test_the_program_knows_every_recipe() -> None:
    assert {*RECIPES} <= {*recipes.RECIPES}


def test_no_recipe_spends_its_run_on_the_warm_up() -> None:
    """TorchTitan's own rule is a fifth of the steps."""
    for recipe in RECIPES.values():
        assert recipe.schedule.warmup <= recipe.steps / 5, recipe.name


TAKEN = [
    f"{RATE}=1e-5",
    f"{RATE.replace('_', '-')} 1e-5",
    f"{RATE}=$(RATE)",
    "--optimizer.param_groups.0.optimizer_kwargs.betas 0.9 0.99 --compile.enable",
    "--compile.no_enable --lr_scheduler.decay_ratio=None",
    "--seed 32 --accept-new-data --keep=5",
]


@pytest.mark.parametrize("words", TAKEN)
def test_options_that_the_program_takes_are_sent(words: str) -> None:
    assert not [*mistaken_words(words.split(" "))]


_NO_VALUE = "not a value of --"
REFUSED = {
    "--optimizer.lr=1e-4": (0, NO_OPTION, f"did you mean {RATE}?"),
    "--lr 1e-4": (0, NO_OPTION, f"did you mean {RATE}?"),
    "--learning-rate=1e-4": (0, NO_OPTION, "known: --accept-new-data, --activation-checkpoint"),
    "--lr_scheduler.warmup_step=5": (0, NO_OPTION, "did you mean --lr_scheduler.warmup_steps?"),
    "--seed=1 --training.warmup_steps=5": (1, NO_OPTION, "did you mean --lr_scheduler.warmup_ste"),
    "--fsdp.x=5": (0, NO_OPTION, "known: --checkpoint., --comm., --compile., --debug."),
    f"{RATE}=fast": (0, f"not a value of {RATE}", "write a number"),
    "--lr_scheduler.decay_type=cos": (
        0,
        f"{_NO_VALUE}lr_scheduler.decay_type",
        "use linear, sqrt, cosine",
    ),
    f"{RATE}=nan": (0, f"not a value of {RATE}", "write a number"),
    "--keep many": (0, f"{_NO_VALUE}keep", "write a whole number"),
    "--keep=1": (0, f"{_NO_VALUE}keep", "write a whole number from 2 on"),
    "--export=s3://models/a": (0, f"{_NO_VALUE}export", "write a folder that all nodes mount, and"),
    "--checkpoint.interval=0": (
        0,
        f"{_NO_VALUE}checkpoint.interval",
        "write a whole number from 1 on",
    ),
    "--validator.steps=0": (0, f"{_NO_VALUE}validator.steps", "write -1 or a whole number from 1"),
    "--lr_scheduler.warmup_steps": (
        0,
        "--lr_scheduler.warmup_steps without a value",
        "write --lr_scheduler.warmup_steps=VALUE",
    ),
    "--compile.enable=true": (
        0,
        "--compile.enable takes no value",
        "write --compile.enable, or --compile.no_enable to turn it off",
    ),
    "--compile.enable true": (
        1,
        "neither an option nor the value of one",
        "write options as --section.key=value",
    ),
    "--checkpoint.folder=/data": (
        0,
        "an option of TorchTitan that the program replaces by a flag",
        "use --output-dir",
    ),
    "--training.steps=5 activation-checkpoint:full": (1, SUBCOMMAND, f"use {RECOMPUTATION}=full"),
    "activation-checkpoint:memory-budget": (0, SUBCOMMAND, f"use {RECOMPUTATION}=none or selectiv"),
    "--metrics.enable_wandb": (
        0,
        "an option without effect: the program has checkpoints and metrics of its own",
        "leave it out",
    ),
}


@pytest.mark.parametrize("words", REFUSED)
def test_words_that_the_program_refuses_are_refused_with_the_right_ones(words: str) -> None:
    at, wrong, todo = REFUSED[words]

    [mistake] = mistaken_words(words.split(" "))
    assert (mistake.at, mistake.wrong) == (("args", at), wrong)
    assert mistake.todo.startswith(todo)


def test_words_after_a_subcommand_are_judged_too() -> None:
    words = ["activation-checkpoint:full", "--optimizer.lr=1e-5", "--training.stepz=5", "garbage"]

    assert [mistake.at for mistake in mistaken_words(words)] == [("args", at) for at in range(4)]
