"""`ultrascale recipes`: list the recipes of training jobs."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Annotated

import typer
from rich.box import SIMPLE

from ultrascale.catalog import INSTANCE_TYPES, InstanceType, lookup
from ultrascale.catalog.recipes import DEVICES, RECIPES, Recipe
from ultrascale.cli import complete
from ultrascale.cli.output import say
from ultrascale.cli.screen import Table, screen
from ultrascale.errors import UsageError
from ultrascale.plan.jobs.checkpoints import interval_in_bucket, span
from ultrascale.plan.jobs.recipes import on_type
from ultrascale.plan.model.recipes import RecipePlan

_GIB = 2**30
_GB = 10**9
_DEFAULT = "p5.48xlarge"


def recipes_command(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", autocompletion=complete.recipes, help="A recipe: show all of it."
        ),
    ] = None,
    *,
    instance_type: Annotated[
        str, typer.Option("--type", metavar="TYPE", help="Instance type of the nodes.")
    ] = _DEFAULT,
    as_json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON.")] = False,
) -> None:
    """List the recipes of training jobs: nodes, tokens a step, memory, checkpoints."""
    if name is not None:
        _show(_known(name), as_json=as_json)
        return
    spec = lookup(instance_type)
    found = [(recipe, on_type(recipe, spec)) for recipe in RECIPES.values()]
    rows = {recipe.name: planned for recipe, planned in found if planned is not None}
    if not rows:
        raise UsageError([f"--type: no recipe is for {instance_type}; use {_accelerators()}"])
    if as_json:
        typer.echo(json.dumps([_document(each) for each in rows.values()], indent=2))
        return
    table = Table(
        "recipe",
        "model",
        "for",
        "nodes",
        "tokens a step",
        "GiB of a device",
        "s a step",
        "checkpoint GB",
        "saved each",
        box=SIMPLE,
    )
    for each in rows.values():
        table.add_row(*_row(each))
    screen().print(table)
    say(f"on {instance_type}; `--type TYPE` for others, `ultrascale recipes NAME` for all of one")
    say(
        "times are estimates; checkpoints go to S3, as often as the published failure rate asks for"
    )


def _known(name: str) -> Recipe:
    if name not in RECIPES:
        raise UsageError([f"NAME: no such recipe, got {name}; known: {', '.join(RECIPES)}"])
    return RECIPES[name]


def _accelerators() -> str:
    return ", ".join(DEVICES)


def _show(recipe: Recipe, *, as_json: bool) -> None:
    plans = {spec.instance_type: planned for spec, planned in _on_each_type(recipe)}
    if as_json:
        document = {name: _document(each) for name, each in plans.items()}
        typer.echo(json.dumps({"recipe": recipe.name, "types": document}, indent=2))
        return
    model = recipe.model
    say(f"{recipe.name}: {recipe.purpose} of {model.name}, {model.parameters / 1e9:,.1f} billion")
    say(f"  {recipe.global_batch} sequences of {recipe.sequence:,} tokens a step")
    say(f"  {recipe.steps:,} steps; {recipe.nodes} nodes where the job states none")
    say(f"  follows {recipe.source}")
    table = Table(
        "type",
        "devices",
        "shard",
        "tensor",
        "pipeline",
        "context",
        "expert",
        "local batch",
        "recomputation",
        "GiB of a device",
        "published run",
        box=SIMPLE,
    )
    for name, each in plans.items():
        degrees = (each.shard, each.tensor, each.pipeline, each.context, each.expert)
        numbers = (each.devices, *degrees, each.local_batch)
        published = "yes" if each.follows else "none"
        table.add_row(
            name, *(f"{number:,}" for number in numbers), each.recomputation, _gib(each), published
        )
    screen().print(table)


def _on_each_type(recipe: Recipe) -> Iterator[tuple[InstanceType, RecipePlan]]:
    """Yield a recipe on each instance type on which it fits."""
    for spec in INSTANCE_TYPES.values():
        planned = on_type(recipe, spec)
        if planned is not None and planned.memory.fits:
            yield spec, planned


def _row(each: RecipePlan) -> tuple[str, ...]:
    seconds = interval_in_bucket(each)
    return (
        each.name,
        each.model,
        each.purpose,
        str(each.nodes),
        f"{each.tokens_per_step:,}",
        _gib(each),
        f"{each.step_seconds:,.1f}",
        f"{each.checkpoint_bytes / _GB:,.0f}",
        span(seconds) if seconds else "",
    )


def _gib(each: RecipePlan) -> str:
    return f"{each.memory.total / _GIB:,.0f} of {each.memory.device / _GIB:,.0f}"


def _document(each: RecipePlan) -> Mapping[str, object]:
    document: dict[str, object] = asdict(each)
    return document | {
        "tokens_per_step": each.tokens_per_step,
        "checkpoint_interval_seconds": round(interval_in_bucket(each)),
    }
