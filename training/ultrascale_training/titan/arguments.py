"""Command line of ``python -m ultrascale_training.titan``: our flags, then TorchTitan's options."""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from ultrascale_training.errors import TrainingError
from ultrascale_training.titan.recipes import RECIPES, Recipe

Recompute = Literal["none", "selective", "full"]
# TorchTitan's options that our own flags or programs replace. A name that ends with a dot stands
# for all options of a section; TorchTitan also takes each option with hyphens.
_OURS = {
    "--dump_folder": "--output-dir",
    "--hf_assets_path": "--load",
    "--dataloader.": "--data",
    "--module": "--recipe",
    "--config": "--recipe",
    "--checkpoint.folder": "--output-dir",
    "--checkpoint.keep_latest_k": "--keep",
    "--checkpoint.initial_load_path": "--load",
    "--checkpoint.initial_load_in_hf": "--load",
    "--checkpoint.last_save_in_hf": "--export",
}
# Sections whose other options TorchTitan would accept and ignore.
_USED = {
    "--checkpoint.": frozenset({"--checkpoint.enable", "--checkpoint.interval"}),
    "--metrics.": frozenset({"--metrics.log_freq"}),
}


class Arguments(argparse.Namespace):
    """A run as the user requested it; docs/recipes.md explains each flag."""

    recipe: Recipe
    data: Path
    validation_data: Path | None
    output_dir: str  # A folder that all nodes mount, or ``s3://bucket/prefix``
    keep: int
    memory_every: int
    steps_this_run: int | None
    seed: int
    activation_checkpoint: Recompute | None
    matmul: Literal["bf16", "float8"]
    load: str | None
    export: str | None
    accept_new_data: bool
    titan: Sequence[str]  # Options for TorchTitan


def parse(arguments: Sequence[str] | None = None) -> Arguments:
    """Return the parsed command line; None parses ``sys.argv``.

    Raises:
        TrainingError: Arguments are wrong; one line for each mistake.
    """
    values, titan = _parser().parse_known_args(arguments, Arguments())
    if mistakes := [*_wrong_values(values), *_wrong_options(titan)]:
        raise TrainingError("\n".join(mistakes))
    values.recipe, values.titan = RECIPES[str(values.recipe)], titan
    return values


def _wrong_values(values: argparse.Namespace) -> Iterator[str]:
    if values.recipe is None:
        yield "--recipe: is missing; name a recipe, see --list"
    elif values.recipe not in RECIPES:
        yield f"--recipe: no such recipe, got {values.recipe!r}; use {', '.join(RECIPES)}"
    if values.data is None:
        yield (
            "--data: is missing; name a folder of token files, which "
            "python -m ultrascale_training.titan.prepare makes"
        )
    if not values.output_dir:
        yield (
            "--output-dir: is missing, and ULTRASCALE_OUTPUT is not set; name a folder that all "
            "nodes mount, or s3://bucket/prefix"
        )
    if values.keep < 2:
        yield f"--keep: a run keeps at least 2 checkpoints, one to fall back to, got {values.keep}"
    if values.memory_every < 0:
        yield f"--memory-every: must be 0 or more steps, got {values.memory_every}"
    if values.steps_this_run is not None and values.steps_this_run < 0:
        yield f"--steps-this-run: must be 0 or more, got {values.steps_this_run}"
    if values.export is not None and "://" in values.export:
        yield (
            f"--export: writes to a folder that all nodes mount, got {values.export!r}; copy it "
            "from there"
        )


def _wrong_options(titan: Sequence[str]) -> Iterator[str]:
    for option in titan:
        if option.startswith("activation-checkpoint:"):
            yield f"{option}: comes from --activation-checkpoint here; use it"
        yield from _unused(option)
        if option.startswith("--") and "." not in option and "=" not in option:
            yield (
                f"{option!r}: neither a flag nor an option of TorchTitan, which are "
                "--section.key=value"
            )


def _unused(option: str) -> Iterator[str]:
    if not option.startswith("--"):
        return
    name = "--" + option[2:].partition("=")[0].replace("-", "_")
    for ours, flag in _OURS.items():
        if name == ours or (ours[-1] == "." and name.startswith(ours)):
            yield f"{option}: comes from {flag} here; use {flag}"
            return
    for section, used in _USED.items():
        # TorchTitan turns a switch off as --section.no-key.
        if name.startswith(section) and name.replace(".no_", ".") not in used:
            yield (
                f"{option}: has no effect here, because this program has checkpoints and metrics "
                f"of its own; leave it out (of {section}* it takes {', '.join(sorted(used))})"
            )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m ultrascale_training.titan",
        description="Pre-train a language model by TorchTitan.",
        epilog="All other options go to TorchTitan, as --section.key=value.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--list", action=_List, help="print the names of the recipes")
    add("--recipe", help="recipe: name of a model, see --list")
    add("--data", type=Path, help="folder of token files")
    add("--validation-data", type=Path, help="folder of token files for validation")
    add("--output-dir", default=os.environ.get("ULTRASCALE_OUTPUT"), help="folder or s3://…")
    add("--keep", type=int, default=3, help="checkpoints to keep (default 3)")
    add(
        "--memory-every",
        type=int,
        default=0,
        help="steps between checkpoints in the memory of HyperPod's nodes (default: none)",
    )
    add("--steps-this-run", type=int, help="steps after which to save and stop")
    add("--seed", type=int, default=0, help="seed of weights and order of data (default 0)")
    add("--activation-checkpoint", choices=("none", "selective", "full"), help="recomputation")
    add("--matmul", choices=("bf16", "float8"), default="bf16", help="numbers of matrices")
    add("--load", help="weights to begin with: a Hugging Face folder, or a checkpoint step-…")
    add("--export", help="folder to which to write weights for Hugging Face at the end")
    add("--accept-new-data", action="store_true", help="resume even if data or order differ")
    return parser


class _List(argparse.Action):
    def __init__(self, option_strings: Sequence[str], dest: str, help: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(*RECIPES, sep="\n")
        parser.exit()


if __name__ == "__main__":
    try:
        parse()
    except TrainingError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
