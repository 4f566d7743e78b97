"""Options of a recipe's program: TorchTitan's own, and flags of the program that starts it.

The file beside this one was read from their parsers; tests compare it with the installed release.
TorchTitan Neuron has a parser of its own, which is not recorded.

Source: https://github.com/pytorch/torchtitan/blob/v0.3.0/torchtitan/config/manager.py
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

_OPTIONS_FILE = Path(__file__).parent / "torchtitan_options.txt"

FLAG = "FLAG"
"""Kind of an option without a value; TorchTitan turns one off as `--section.no_key`."""

FOLDER = "FOLDER"
"""Kind of an option that takes a folder of a mounted file system, not a URI."""

NO_EFFECT = "-"
"""Kind of an option without effect, as the program replaces its part of TorchTitan."""

SUBCOMMAND = "activation-checkpoint:"
"""Prefix of the subcommands after which TorchTitan takes other options."""


@cache
def options() -> Mapping[str, str]:
    """Return the kinds of values by option, such as `training.steps` or `--data`.

    A kind is `FLAG`, `NO_EFFECT`, the flag of the program that takes the option's place, or the
    alternatives for a value: `INT`, `INT>=1` with a bound, `FLOAT`, `STR`, `FOLDER` and words.
    A `*` at its end means several.
    """
    lines = _OPTIONS_FILE.read_text(encoding="utf-8").splitlines()
    return MappingProxyType(dict(line.split(" ") for line in lines))
