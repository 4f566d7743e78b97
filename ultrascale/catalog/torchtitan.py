"""Options that a recipe's program takes: TorchTitan's own, and flags of the program that starts it.

The file beside this one was read from their parsers; tests hold it against the installed release.
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
"""Kind of an option that names a folder of a mounted file system, no URI."""

NO_EFFECT = "-"
"""Kind of an option that the program replaces by something of its own."""

SUBCOMMAND = "activation-checkpoint:"
"""Beginning of the words after which TorchTitan takes other options."""


@cache
def options() -> Mapping[str, str]:
    """Return the kind of each option's value by its name, as in `training.steps` or `--data`.

    A kind is `FLAG`, `NO_EFFECT`, the flag of the program that takes the option's place, or the
    alternatives for a value: `INT`, `INT>=1` with a bound, `FLOAT`, `STR`, `FOLDER` and words.
    A `*` at its end means several.
    """
    lines = _OPTIONS_FILE.read_text(encoding="utf-8").splitlines()
    return MappingProxyType(dict(line.split(" ") for line in lines))
