"""The list of recipes, from which a user picks a model and the nodes for it."""

import json

import pytest

from tests.support.command_line import Ultrascale
from ultrascale.parts.recipes.table import RECIPES


def test_every_recipe_is_listed_with_what_it_costs_to_run(ultrascale: Ultrascale) -> None:
    rows = json.loads(ultrascale("recipes", "--type", "p5en.48xlarge", "--json").stdout)
    assert [row["name"] for row in rows] == [*RECIPES]
    (row,) = (row for row in rows if row["name"] == "llama3-70b")
    assert (row["nodes"], row["tokens_per_step"]) == (32, 4_194_304)
    assert row["memory"]["states"] < row["memory"]["device"]
    assert row["checkpoint_bytes"] == 12 * row["parameters"]
    assert 600 < row["checkpoint_interval_seconds"] < 7200


def test_a_recipe_shows_its_degrees_on_each_type(ultrascale: Ultrascale) -> None:
    shown = ultrascale("recipes", "llama3-405b").stdout
    types = json.loads(ultrascale("recipes", "llama3-405b", "--json").stdout)["types"]

    assert "405.9 billion" in shown
    assert "checkpoints of 4,870 GB" in shown
    assert "published run: https://github.com/pytorch/torchtitan/" in shown
    (row,) = (line.split() for line in shown.splitlines() if "p6-b200.48xlarge" in line)
    assert [word for word in row if word != "x"][1:8] == (
        ["512", "shard", "16", "tensor", "8", "pipeline", "4"]
    )
    assert (types["p5.48xlarge"]["tensor"], types["p5.48xlarge"]["pipeline"]) == (8, 8)


def test_a_recipe_shows_its_learning_rate_and_where_that_comes_from(ultrascale: Ultrascale) -> None:
    shown = ultrascale("recipes", "llama3-405b").stdout
    schedule = json.loads(ultrascale("recipes", "llama3-405b", "--json").stdout)["schedule"]
    assert "on GPUs learning rate 8e-05 after 600 steps of warm-up, then linear to 0" in shown
    assert schedule == {"rate": 8e-05, "warmup": 600}


def test_a_type_on_which_a_recipe_does_not_fit_is_shown_when_it_is_asked_for(
    ultrascale: Ultrascale,
) -> None:
    one = json.loads(ultrascale("recipes", "llama3-405b", "--type", "p5.4xlarge", "--json").stdout)[
        "types"
    ]
    every = json.loads(ultrascale("recipes", "llama3-405b", "--json").stdout)["types"]
    assert one.keys() == {"p5.4xlarge"}
    assert "p5.4xlarge" not in every
    shown = ultrascale("recipes", "llama3-405b", "--type", "p5.4xlarge").stdout
    assert " of 76: too small" in shown


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (("llama3-9b",), "NAME: no such recipe, got llama3-9b; known: llama3-8b, "),
        (("--type", "m7i.large"), "--type: no recipe is for m7i.large; use NVIDIA A100 (p4d."),
        (("--type", "p9.large"), "--type: unknown instance type 'p9.large'; did you mean "),
        (
            ("llama3-405b", "--type", "trn2.48xlarge"),
            "--type: llama3-405b is not for trn2.48xlarge; use NVIDIA H100 (p5.",
        ),
    ],
)
def test_what_no_recipe_is_for_is_told(
    ultrascale: Ultrascale, words: tuple[str, ...], wrong: str
) -> None:
    answer = ultrascale("recipes", *words)
    assert (answer.returncode, answer.stdout) == (64, "")
    assert answer.stderr.startswith(wrong)


def test_methods_of_post_training_are_listed_by_purpose(ultrascale: Ultrascale) -> None:
    assert "grpo" in ultrascale("recipes").stdout
    assert "prompt, chosen, rejected" in ultrascale("recipes", "--purpose", "dpo").stdout
    (adapters,) = json.loads(ultrascale("recipes", "sft-lora", "--json").stdout)
    assert (adapters["script"], adapters["trainium"][:20]) == ("sft", "optimum-neuron 0.4.5")
    pretrained = json.loads(ultrascale("recipes", "--purpose", "pre-train", "--json").stdout)
    assert [row["name"] for row in pretrained if row["purpose"] == "pre-train"] == [*RECIPES]
    for purpose, is_marked in (("sft", True), ("grpo", False)):
        assert ("not run" in ultrascale("recipes", "--purpose", purpose).stdout) is is_marked
    assert ultrascale("recipes", "--purpose", "nothing").returncode == 64
