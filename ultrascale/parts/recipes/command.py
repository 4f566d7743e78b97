"""`ultrascale recipes`: list the recipes of training jobs."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated

import typer
from rich.box import SIMPLE

from ultrascale.catalog import INSTANCE_TYPES, InstanceType, lookup
from ultrascale.catalog.failures import PUBLISHED
from ultrascale.cli import complete, options
from ultrascale.cli.output import say
from ultrascale.cli.screen import Table, screen
from ultrascale.errors import CatalogError, UsageError
from ultrascale.frozen import to_document
from ultrascale.parts.recipes.chosen import Chosen, on_type, step_of
from ultrascale.parts.recipes.posttraining import ENGINE
from ultrascale.parts.recipes.section import METHOD_OF, Method
from ultrascale.parts.recipes.table import DEVICES, NEURON_ENGINE, RECIPES, Recipe
from ultrascale.plan.jobs import checkpoints
from ultrascale.plan.jobs.checkpoints import span
from ultrascale.plan.jobs.devices import device_of_type

_GIB = 2**30
_GB = 10**9
_DEFAULT = "p5.48xlarge"
_PURPOSE = "pre-train"
_ESTIMATES = (
    "seconds of a step follow from published speeds, and are unknown without one; `saved each` is "
    "for nodes that write to S3, by the published failure rate"
)

_COLUMNS = (
    *("recipe", "model", "nodes", "tokens a step", "GiB of a device", "s a step"),
    *("checkpoint GB", "saved each"),
)
# Columns that answer which recipe, on how many nodes, and how fast; they fit 80 characters.
_FIRST = (0, 2, 4, 5)


def _recipes(incomplete: str) -> Sequence[str]:
    """Return the recipes whose names begin so."""
    return complete.matching_names(incomplete, [*RECIPES, *METHOD_OF])


def recipes_command(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", autocompletion=_recipes, help="A recipe: show all of it."),
    ] = None,
    *,
    purpose: Annotated[
        str | None,
        typer.Option(metavar="PURPOSE", help="Recipes of one purpose, such as `grpo`."),
    ] = None,
    instance_type: Annotated[
        str | None,
        typer.Option(
            "--type",
            metavar="TYPE",
            help=f"Instance type of the nodes: by default {_DEFAULT}, or with NAME every type.",
        ),
    ] = None,
    all_columns: Annotated[
        bool, typer.Option("--all", help="Show models, tokens and checkpoints as well.")
    ] = False,
    as_json: options.AllAsJson = False,
) -> None:
    """List the recipes of training jobs: nodes, tokens a step, memory, checkpoints."""
    methods = [one for one in METHOD_OF.values() if name in (None, one.name)]
    methods = [one for one in methods if purpose in (None, one.name, one.script)]
    if name in METHOD_OF or (methods and purpose is not None):
        _print_methods(methods, as_json=as_json)
        return
    if name is not None:
        _print_recipe(_known_recipe(name), instance_type, as_json=as_json)
        return
    instance_type = instance_type or _DEFAULT
    spec = _instance_spec(instance_type)
    plans = (on_type(recipe, spec) for recipe in RECIPES.values())
    rows = {plan.recipe.name: plan for plan in plans if plan is not None}
    if purpose not in (None, _PURPOSE):
        raise UsageError([f"--purpose: none such, use {', '.join([_PURPOSE, *METHOD_OF])}"])
    if not rows:
        raise UsageError(
            [f"--type: no recipe is for {instance_type}; use {_accelerators(DEVICES)}"]
        )
    if as_json:
        typer.echo(json.dumps([_document(plan) for plan in rows.values()], indent=2))
        return
    shown = _COLUMNS if all_columns else tuple(_COLUMNS[number] for number in _FIRST)
    table = Table(*shown, box=SIMPLE)
    for plan in rows.values():
        row = tuple(_row(plan))
        table.add_row(*(row if all_columns else (row[number] for number in _FIRST)))
    screen().print(table)
    if any(plan.device.is_neuron for plan in rows.values()):
        say(f"by {NEURON_ENGINE} in an image of yours: in beta, and run by none of our tests")
    say(f"on {instance_type}; `--type TYPE` for others, `ultrascale recipes NAME` for all of one")
    if purpose is None:
        say(f"post-training by {ENGINE}, of a model of yours: {', '.join(METHOD_OF)}; --purpose")
    say(_ESTIMATES if all_columns else "times are estimates; --all: tokens and checkpoints")


def _print_methods(methods: Sequence[Method], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps([to_document(method) for method in methods], indent=2))
        return
    table = Table("recipe", "does", "a row of its data", box=SIMPLE)
    for method in methods:
        table.add_row(method.name, method.does, method.rows)
    screen().print(table)
    if any(method.script for method in methods):
        say(f"by {ENGINE}: `args` take the options of its script, such as --model_name_or_path")
    if neuron := [method for method in methods if method.trainium]:
        named = ", ".join(method.name for method in neuron)
        say(f"on Trn1 and Trn2 {named} by {neuron[0].trainium}, in an image of yours: not run")


def _known_recipe(name: str) -> Recipe:
    if name not in RECIPES:
        raise UsageError(
            [f"NAME: no such recipe, got {name}; known: {', '.join([*RECIPES, *METHOD_OF])}"]
        )
    return RECIPES[name]


def _instance_spec(instance_type: str) -> InstanceType:
    try:
        return lookup(instance_type)
    except CatalogError as error:
        raise UsageError([f"--type: {error}"]) from error


def _accelerators(names: Iterable[str]) -> str:
    """Return accelerators, each with the instance types that have it."""
    types: dict[str, list[str]] = {name: [] for name in names}
    for spec in INSTANCE_TYPES.values():
        device = device_of_type(spec)
        if device is not None and device.name in types:
            types[device.name].append(spec.instance_type)
    return "; ".join(f"{name} ({', '.join(having)})" for name, having in types.items())


def _print_recipe(recipe: Recipe, instance_type: str | None, *, as_json: bool) -> None:
    plans = _plans_by_type(recipe, instance_type)
    if as_json:
        document = {name: _document(planned) for name, planned in plans.items()}
        schedule = to_document(recipe.schedule)
        shown = {"recipe": recipe.name, "schedule": schedule, "types": document}
        typer.echo(json.dumps(shown, indent=2))
        return
    for line in _lines_of(recipe, [*plans.values()]):
        say(line)
    screen().print(_table_of_types(plans))
    say(_ESTIMATES)


def _plans_by_type(recipe: Recipe, instance_type: str | None) -> Mapping[str, Chosen]:
    """Return the plan of a recipe on one type, or on each type that the recipe fits."""
    specs = INSTANCE_TYPES.values() if instance_type is None else [_instance_spec(instance_type)]
    planned = {spec.instance_type: on_type(recipe, spec) for spec in specs}
    plans = {name: plan for name, plan in planned.items() if plan is not None}
    if instance_type is None:
        plans = {name: plan for name, plan in plans.items() if plan.memory.fits}
    if not plans:
        known = _accelerators(recipe.layouts)
        raise UsageError([f"--type: {recipe.name} is not for {instance_type}; use {known}"])
    return plans


def _lines_of(recipe: Recipe, plans: Sequence[Chosen]) -> Iterator[str]:
    """Yield the lines about a recipe that hold for all types."""
    model = recipe.model
    (size,) = {plan.checkpoint_bytes for plan in plans}
    yield f"{recipe.name}: pre-trains {model.name}, {model.parameters / 1e9:,.1f} billion"
    yield f"  {recipe.global_batch} sequences of {recipe.sequence:,} tokens a step:"
    yield f"  {recipe.tokens_per_step:,} tokens, {recipe.steps:,} steps"
    yield f"  {recipe.nodes} nodes where the job states none"
    yield f"  checkpoints of {size / _GB:,.0f} GB"
    yield f"  follows {recipe.source}"
    rate, warmup = recipe.schedule.rate, recipe.schedule.warmup
    yield f"  on GPUs learning rate {rate:g} after {warmup} steps of warm-up, then linear to 0"
    for source in sorted({plan.layout.source for plan in plans} - {""}):
        yield f"  published run: {source}"


def _table_of_types(plans: Mapping[str, Chosen]) -> Table:
    table = Table(
        "type",
        "devices",
        "degrees",
        "local batch",
        "recomputation",
        "GiB of a device",
        "s a step",
        "saved each",
        "published run",
        box=SIMPLE,
    )
    for type_name, plan in plans.items():
        seconds = interval_in_bucket(plan)
        division = plan.division
        experts = f", experts by {division.expert}" if division.expert > 1 else ""
        table.add_row(
            type_name,
            f"{plan.devices:,}",
            f"{plan.degrees}{experts}",
            f"{division.local_batch:,}",
            division.recomputation,
            _gib(plan),
            _seconds_text(plan),
            span(seconds),
            "yes" if plan.layout.source else "none",
        )
    return table


def _row(plan: Chosen) -> tuple[str, ...]:
    seconds = interval_in_bucket(plan)
    return (
        plan.recipe.name,
        plan.recipe.model.name,
        str(plan.nodes),
        f"{plan.tokens_per_step:,}",
        _gib(plan),
        _seconds_text(plan),
        f"{plan.checkpoint_bytes / _GB:,.0f}",
        span(seconds),
    )


def _seconds_text(plan: Chosen) -> str:
    seconds, source = step_of(plan)
    return f"{seconds:,.1f}" if source else "unknown"


def _gib(plan: Chosen) -> str:
    shown = f"{plan.memory.total / _GIB:,.0f} of {plan.memory.device / _GIB:,.0f}"
    return shown if plan.memory.fits else f"{shown}: too small"


def _document(plan: Chosen) -> Mapping[str, object]:
    seconds, source = step_of(plan)
    return {
        "name": plan.recipe.name,
        "model": plan.recipe.model.name,
        "purpose": _PURPOSE,
        "engine": plan.engine,
        "accelerator": plan.device.name,
        "nodes": plan.nodes,
        "devices": plan.devices,
        **to_document(plan.division),
        "global_batch": plan.global_batch,
        "steps": plan.steps,
        "parameters": plan.recipe.model.parameters,
        "memory": to_document(plan.memory),
        "checkpoint_bytes": plan.checkpoint_bytes,
        "float8": plan.float8,
        "step_seconds": seconds,
        "speed_source": source,
        "follows": plan.layout.source,
        "tokens_per_step": plan.tokens_per_step,
        "checkpoint_interval_seconds": round(interval_in_bucket(plan)),
    }


def interval_in_bucket(plan: Chosen) -> float:
    """Return the seconds between checkpoints of a recipe that its nodes write to S3."""
    rate = checkpoints.bucket_bandwidth(
        nodes=plan.nodes, processes=plan.devices // plan.nodes, size=plan.checkpoint_bytes
    )
    saves = checkpoints.checkpoints_of(
        plan.checkpoint_bytes,
        rate,
        copied=plan.copied_bytes,
        nodes=plan.nodes,
        node_hours=PUBLISHED.node_hours_between,
    )
    return saves.interval_seconds
