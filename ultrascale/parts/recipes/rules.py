"""Nodes, arguments, degrees, batches and memory with which a recipe would fail."""

import math
from collections.abc import Iterator

from msgspec.structs import replace

from ultrascale import config
from ultrascale.parts.recipes import options
from ultrascale.parts.recipes.chosen import Chosen, chosen_of
from ultrascale.parts.recipes.memory import Division
from ultrascale.parts.recipes.options import Options
from ultrascale.parts.recipes.plan import plan_program
from ultrascale.parts.recipes.section import recipe_of
from ultrascale.parts.recipes.table import FLOAT8_DEVICES, RECIPES, Recipe
from ultrascale.plan.jobs.checkpoints import too_small_file_system
from ultrascale.plan.jobs.devices import Device, smallest_device
from ultrascale.plan.jobs.nodes import NodeShare
from ultrascale.plan.jobs.output import plan_output
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.rules import Nodes, WrongKeys, rule

Mistakes = Iterator[config.Mistake]

_GIB = 2**30
_KEY = "recipe"
# Keys that a recipe is judged by, beside those of its nodes.
_READ = frozenset({"recipe", "nodes", "min_nodes", "args", "processes_per_node"})
# Numbers of nodes that a message names.
_SHOWN = 5
# A batch this much larger trains another model.
_LARGEST_CHANGE = 4


@rule
def recipe_suits_its_nodes(
    request: JobRequest, share: NodeShare, pools: Nodes, wrong_keys: WrongKeys
) -> Mistakes:
    """Yield the mistakes of a job's recipe on its nodes.

    Args:
        request: The job.
        share: What each of its pods may have of a node.
        pools: Pools that it may run on.
        wrong_keys: Keys of the job with mistakes that are known.
    """
    recipe = RECIPES.get(recipe_of(request.job) or "")
    if recipe is None or not isinstance(request.job, config.TrainingJob):
        return
    if not _READ.isdisjoint(wrong_keys):
        return
    stated = options.read(request.job.args)
    device = smallest_device(share, pools)
    if device is None or device.name not in recipe.layouts:
        having = "no accelerators" if device is None else device.name
        where = ", ".join(sorted({pool.pool for pool in pools}))
        known = ", ".join(recipe.layouts)
        problem = f"a recipe for {known}, and nodes of {where} have {having}"
        todo = "choose another pool, or write a script of your own"
        yield config.refuse(_KEY, problem, todo)
        return
    if device.is_neuron:
        yield from _on_neuron(request, stated)
    else:
        yield from options.mistaken_words(request.job.args)
        yield from _names_another(stated)
        yield from _has_data(request, stated)
    if no_numbers := [*options.mistaken_numbers(stated)]:
        yield from no_numbers
        return
    chosen = chosen_of(recipe, device, request.job)
    if isinstance(chosen, str):
        yield config.refuse("nodes", chosen, _degrees(recipe, device, request.job), got="")
        return
    yield from mistakes_in(chosen, request.job)
    if (program := plan_program(request, share)) is not None:
        yield from too_small_file_system(request, program)


def mistakes_in(chosen: Chosen, job: config.TrainingJob) -> Mistakes:
    """Yield degrees and batches of a job that do not suit its model, or no device holds."""
    if chosen.float8 and chosen.device.name not in FLOAT8_DEVICES:
        problem = f"an {chosen.device.name} does not multiply in 8 bits"
        yield _at(job, options.MATRICES, problem, "leave it out")
    yield from _shape(chosen, job)
    yield from _on_fewer_nodes(chosen, job)
    if not chosen.memory.fits:
        yield _too_large(chosen)


def _names_another(stated: Options) -> Mistakes:
    """Yield a recipe in the arguments, which would run in place of the one that was judged."""
    option = stated.get(options.RECIPE)
    if option is not None:
        problem = "--recipe names a second recipe, beside the key recipe"
        yield config.refuse(f"args.{option.at}", problem, "write it in the key instead")


def _has_data(request: JobRequest, stated: Options) -> Mistakes:
    if not request.mounts and options.DATA not in stated:
        problem = "a recipe without data: the job mounts no volume, and args have no --data"
        todo = "add a volume, or --data=FOLDER to args"
        yield config.refuse(_KEY, problem, todo)


def _on_neuron(request: JobRequest, stated: Options) -> Mistakes:
    """Yield features that TorchTitan Neuron, which is not ours, lacks."""
    named = stated.get(options.CONFIG)
    if named is None or not named.value:
        problem = "no configuration of TorchTitan Neuron that a source names for this model"
        todo = "add --config=NAME of your image to args"
        yield config.refuse(_KEY, problem, todo)
    place = plan_output(request)
    if place is not None and place.source == "s3" and not stated.names_folder:
        problem = "TorchTitan Neuron saves only to folders, and this output would be in S3"
        todo = "add a volume, or, where nothing is to be kept, write durable: false"
        yield config.refuse(_KEY, problem, todo)


def _degrees(recipe: Recipe, device: Device, job: config.TrainingJob) -> str:
    layout, stated = recipe.layouts[device.name], options.read(job.args)
    own = layout.tensor * layout.pipeline * layout.context
    if any(name in stated for name in options.DEGREES):
        return "change a degree of parallelism in args, or nodes"
    return f"use nodes of which {own} devices are a part: nodes: {recipe.nodes}, for example"


def _shape(chosen: Chosen, job: config.TrainingJob) -> Mistakes:
    """Yield degrees that do not divide the model or its batch.

    Source: https://github.com/pytorch/torchtitan/blob/v0.3.0/torchtitan/models/common/decoder.py
    """
    model, division = chosen.recipe.model, chosen.division
    for heads, of in ((model.heads, "heads"), (model.kv_heads, "key and value heads")):
        if heads % division.tensor:
            known = _divisors(math.gcd(model.heads, model.kv_heads))
            problem = f"{of} of {model.name}, {heads}, that {division.tensor} devices cannot share"
            yield _at(job, options.TENSOR, problem, f"write {known}")
            break
    if division.pipeline > model.layers:
        problem = f"more stages than the {model.layers} layers of {model.name}"
        yield _at(job, options.PIPELINE, problem, "write less")
    if division.pipeline > 1:
        yield from _passes(division, job)
    parts = division.tensor * division.context * (2 if division.context > 1 else 1)
    if division.sequence % parts:
        problem = f"tokens that {parts} parts of tensor and context cannot share"
        yield _at(job, options.SEQUENCE, problem, f"write a multiple of {parts}")
    if model.longest_context is not None and division.sequence > model.longest_context:
        problem = f"more tokens than the {model.longest_context:,} of a sequence of {model.name}"
        yield _at(job, options.SEQUENCE, problem, "write less")
    yield from _experts(chosen, job)
    together = division.local_batch * division.shard * division.replicate
    if chosen.global_batch % together:
        groups = division.shard * division.replicate
        problem = (
            f"{chosen.global_batch} sequences a step, which {groups} groups of "
            f"{division.local_batch} cannot share"
        )
        above = math.ceil(chosen.global_batch / together) * together
        fewer = next((n for n in range(chosen.nodes - 1, 0, -1) if chosen.shares_on(n)), None)
        counts = f", or nodes: {fewer}" if fewer else ""
        todo = f"add --{options.GLOBAL_BATCH}={above} to args{counts}"
        yield _at(job, options.GLOBAL_BATCH, problem, todo)


def _passes(division: Division, job: config.TrainingJob) -> Mistakes:
    """Yield a batch of which a pipeline cannot make as many passes as it has stages."""
    batch, microbatch = division.local_batch, division.microbatch
    if batch % microbatch:
        problem = f"passes of {microbatch} sequences, which do not make up the {batch} of a batch"
        yield _at(job, options.MICROBATCH, problem, f"write {_divisors(batch)}")
    elif division.passes < division.pipeline:
        problem = (
            f"a batch of {batch} is {division.passes} of the {division.pipeline} passes that keep "
            f"{division.pipeline} stages at work"
        )
        todo = f"add --{options.LOCAL_BATCH}={division.pipeline * microbatch} to args"
        yield _at(job, options.LOCAL_BATCH, problem, todo)


def _experts(chosen: Chosen, job: config.TrainingJob) -> Mistakes:
    model, division = chosen.recipe.model, chosen.division
    if division.expert == 1:
        return
    if not model.experts:
        yield _at(job, options.EXPERT, f"{model.name} has no experts", "leave it out")
        return
    if model.experts % division.expert:
        problem = f"{model.experts} experts, which {division.expert} devices cannot share"
        yield _at(job, options.EXPERT, problem, f"write {_divisors(model.experts)}")
    shared = division.shard * division.context * division.tensor
    if shared % division.expert:
        problem = f"no part of the {shared} devices of shard x context x tensor"
        todo = f"write {_divisors(math.gcd(shared, model.experts))}"
        yield _at(job, options.EXPERT, problem, todo)


def _on_fewer_nodes(chosen: Chosen, job: config.TrainingJob) -> Mistakes:
    """Yield numbers of nodes of an elastic job on which TorchTitan would end."""
    if chosen.least_nodes == chosen.nodes:
        return
    stated = options.read(job.args).get(options.SHARD)
    if stated is not None and stated.value != str(options.THE_REST):
        problem = "min_nodes changes this number, and args fix it"
        yield config.refuse(f"args.{stated.at}", problem, "leave it out")
        return
    counts = range(chosen.least_nodes, chosen.nodes)
    unfit = [nodes for nodes in counts if not chosen.shares_on(nodes)]
    if not unfit:
        return
    most = chosen.nodes - unfit[-1]
    remedy = f"write min_nodes: {unfit[-1] + 1}" if most > 1 else "leave it out"
    shown = ", ".join(map(str, unfit[:_SHOWN])) + (" and more" if len(unfit) > _SHOWN else "")
    problem = f"degrees and {chosen.global_batch} sequences a step do not suit {shown} nodes"
    yield config.refuse("min_nodes", problem, f"{remedy}, or {_batch_for(chosen)}")


def _batch_for(chosen: Chosen) -> str:
    """Return the batch that all numbers of nodes of an elastic job can share."""
    division = chosen.division
    counts = range(chosen.least_nodes, chosen.nodes + 1)
    group = division.context * division.tensor * division.pipeline
    if any(nodes * chosen.device.count % division.others for nodes in counts):
        return "change a degree of parallelism in args"
    together = [nodes * chosen.device.count // group * division.local_batch for nodes in counts]
    unit = math.lcm(*together)
    batch = math.ceil(chosen.global_batch / unit) * unit
    times = batch / chosen.global_batch
    warned = f", {times:,.0f} times as many" if times > _LARGEST_CHANGE else ""
    return f"add --{options.GLOBAL_BATCH}={batch} to args{warned}"


def _at(job: config.TrainingJob, option: str, problem: str, todo: str) -> config.Mistake:
    """Return a mistake at the argument that states ``option``, or at the recipe without one."""
    stated = options.read(job.args).get(option)
    if stated is None:
        return config.refuse(_KEY, problem, todo)
    return config.refuse(f"args.{stated.at}", problem, todo)


def _too_large(chosen: Chosen) -> config.Mistake:
    memory = chosen.memory
    fewer = f" with min_nodes: {chosen.least_nodes}" if chosen.least_nodes < chosen.nodes else ""
    problem = (
        f"takes {memory.total / _GIB:,.1f} of {memory.device / _GIB:,.1f} usable GiB on an "
        f"{chosen.device.name}{fewer} (states {memory.states / _GIB:,.0f}, gathered "
        f"{memory.gathered / _GIB:,.0f}, activations {memory.activations / _GIB:,.0f}, logits "
        f"{memory.logits / _GIB:,.0f}, reserved {memory.reserved / _GIB:,.0f})"
    )
    ways = [*_ways(chosen)]
    todo = " or ".join(ways[:2]) if ways else "choose larger accelerators, or a smaller model"
    return config.refuse(_KEY, problem, todo)


def _ways(chosen: Chosen) -> Iterator[str]:
    """Yield single changes that make the model fit, those that cost least first."""
    division, per_node = chosen.division, chosen.device.count
    batch = division.local_batch // 2
    while batch >= (division.pipeline * division.microbatch if division.pipeline > 1 else 1):
        if _fits(chosen, replace(division, local_batch=batch)):
            yield f"add --{options.LOCAL_BATCH}={batch} to args"
            break
        batch //= 2
    if division.recomputation != "full" and _fits(chosen, replace(division, recomputation="full")):
        yield f"add {options.RECOMPUTATION}=full to args"
    model = chosen.recipe.model
    for option, key, most in (
        (options.TENSOR, "tensor", min(per_node, math.gcd(model.heads, model.kv_heads))),
        (options.CONTEXT, "context", per_node),
        (options.PIPELINE, "pipeline", min(division.local_batch, model.layers)),
    ):
        degree = getattr(division, key) * 2
        while degree <= most and division.shard * getattr(division, key) % degree == 0:
            if _fits(chosen, replace(division, **{key: degree})):
                yield f"add --{option}={degree} to args"
                break
            degree *= 2
    for times in (2, 4, 8, 16):
        nodes = chosen.nodes * times
        larger = replace(chosen, nodes=nodes, least_nodes=chosen.least_nodes * times)
        if larger.memory.fits and chosen.shares_on(nodes):
            yield f"write nodes: {nodes}"
            break


def _fits(chosen: Chosen, division: Division) -> bool:
    return replace(chosen, division=division).memory.fits


def _divisors(count: int) -> str:
    return ", ".join(str(part) for part in range(1, count + 1) if count % part == 0)
