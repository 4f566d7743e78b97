"""Flags that a job with a recipe may have, by the program that takes them."""

import re

import pytest

from ultrascale.catalog import torchtitan
from ultrascale.catalog.recipes import RECIPES
from ultrascale_training.titan import arguments, recipes


def test_a_flag_is_refused_only_if_the_program_has_none_of_that_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        arguments.parse(["--help"])
    usage, _, _ = capsys.readouterr().out.partition("\n\n")

    assert {*re.findall(r"--[a-z-]+", usage)} - {"--list"} == torchtitan.FLAGS


def test_the_program_knows_every_recipe() -> None:
    assert {*RECIPES} <= {*recipes.names()}
