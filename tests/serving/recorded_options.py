"""Options of `vllm serve` as its own parser has them: `ultrascale/catalog/vllm_options.csv`.

`.make/serving/bin/python -m tests.serving.recorded_options` writes them anew for another release.
"""

import argparse
import csv
import inspect
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vllm.entrypoints.cli.serve import ServeSubcommand
from vllm.utils.argparse_utils import FlexibleArgumentParser

FILE = Path(__file__).parents[2] / "ultrascale" / "catalog" / "vllm_options.csv"


def vllm_parser() -> FlexibleArgumentParser:
    parser = FlexibleArgumentParser()
    ServeSubcommand().subparser_init(parser.add_subparsers(dest="subparser"))
    return parser


def recorded_options() -> str:
    """Return a row for each option: its spellings, its `nargs`, and the reader of its value."""
    (commands,) = vllm_parser()._subparsers._group_actions  # type: ignore[union-attr]
    choices: Mapping[str, argparse.ArgumentParser] = commands.choices  # type: ignore[assignment]
    actions = [action for action in choices["serve"]._actions if action.option_strings]
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(("names", "nargs", "type"))
    for names, action in sorted((" ".join(action.option_strings), action) for action in actions):
        nargs = "" if action.nargs is None else action.nargs
        rows.writerow((names, nargs, reader_of(action.type)))
    return text.getvalue()


def reader_of(kind: Any) -> str:
    """Return the name of the function that reads a value, without those that wrap it."""
    while inspect.isfunction(kind) and "return_type" in inspect.getclosurevars(kind).nonlocals:
        kind = inspect.getclosurevars(kind).nonlocals["return_type"]
    return getattr(kind, "__name__", "")


if __name__ == "__main__":
    FILE.write_text(recorded_options(), encoding="utf-8")
