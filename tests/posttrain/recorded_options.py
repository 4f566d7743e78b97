"""Record of TRL's options by its own parsers: `python -m tests.posttrain.recorded_options`.

A line has a kind, the methods that take it (`all`: each), and names. A kind is `INT`, `FLOAT`,
`BOOL`, `STR` or words; `*` at its end means several values, `?` one or none, and a `FLAG` takes
none.
"""

import argparse
import importlib
import textwrap
from collections.abc import Mapping
from pathlib import Path

from ultrascale_training.posttrain import METHODS

RECORD = Path(__file__).parents[2] / "ultrascale/parts/recipes/trl_options.txt"


def kind_of(action: argparse.Action) -> str:
    """Return the kind of value that an option's parser takes."""
    if action.nargs == 0:
        return "FLAG"
    several = "*" if action.nargs in ("*", "+") else "?" if action.nargs == "?" else ""
    if action.choices is not None:
        return "|".join(map(str, action.choices)) + several
    for kind, word in (("STR", "x"), ("FLOAT", "1.5"), ("INT", "1")):
        value = _parsed(action, word)
        if isinstance(value, bool):
            return "BOOL"
        if value is not None:
            optional = kind != "STR" and _takes_none(action)
            return f"{'none|' * optional}{kind}{several}"
    return f"STR{several}"


def _parsed(action: argparse.Action, word: str) -> object:
    try:
        return action.type(word) if callable(action.type) else word
    except (ValueError, TypeError, argparse.ArgumentTypeError):
        return None


def _takes_none(action: argparse.Action) -> bool:
    try:
        return callable(action.type) and action.type("none") is None
    except (ValueError, TypeError, argparse.ArgumentTypeError):
        return False


def options_of(method: str) -> Mapping[str, str]:
    """Return the kinds of a method's options by name, as TRL's parser has them."""
    parser = importlib.import_module(f"trl.scripts.{method}").make_parser()
    return {
        action.option_strings[0].removeprefix("--"): kind_of(action)
        for action in parser._actions
        if action.option_strings[0] != "-h" and action.option_strings[0].startswith("--")
    }


def recorded() -> str:
    """Return the text of the record."""
    names: dict[tuple[str, str], list[str]] = {}
    known = {method: options_of(method) for method in METHODS}
    for name in sorted({name for options in known.values() for name in options}):
        kinds = {options[name] for options in known.values() if name in options}
        for kind in sorted(kinds):
            having = [method for method in METHODS if known[method].get(name) == kind]
            who = "all" if len(having) == len(METHODS) else ",".join(having)
            names.setdefault((kind, who), []).append(name)
    lines: list[str] = []
    for (kind, who), those in sorted(names.items()):
        prefix = f"{kind} {who} "
        lines += textwrap.wrap(
            " ".join(those),
            99,
            initial_indent=prefix,
            subsequent_indent=prefix,
            break_on_hyphens=False,
            break_long_words=False,
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    RECORD.write_text(recorded())
