"""Recipe of a job: its options, the division of the model among devices, and what is wrong."""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from ultrascale import catalog, config
from ultrascale.catalog import recipes
from ultrascale.catalog.recipes import Layout, Recipe, Recomputation
from ultrascale.plan.jobs import memory
from ultrascale.plan.jobs.memory import Division
from ultrascale.plan.jobs.nodes import NodeShare
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.model import PoolPlan
from ultrascale.plan.model.recipes import MemoryPlan, RecipePlan

Mistakes = Iterator[config.Mistake]

_MIB, _GIB = 2**20, 2**30
_OPTION = re.compile(r"--([A-Za-z_-]+\.[A-Za-z0-9_.-]+)(?:=(.*))?", re.DOTALL)
_RECOMPUTATION = "--activation-checkpoint"
_DATA, _WEIGHTS, _CONFIG = "--data", "--load", "--config"
_LEARNS_FROM_WEIGHTS = ("fine-tune", "lora", "evaluate")
_KEY = "recipe"

TENSOR = "parallelism.tensor_parallel_degree"
PIPELINE = "parallelism.pipeline_parallel_degree"
CONTEXT = "parallelism.context_parallel_degree"
EXPERT = "parallelism.expert_parallel_degree"
SHARD = "parallelism.data_parallel_shard_degree"
REPLICATE = "parallelism.data_parallel_replicate_degree"
LOCAL_BATCH = "training.local_batch_size"
GLOBAL_BATCH = "training.global_batch_size"
SEQUENCE = "training.seq_len"
STEPS = "training.steps"
_NO_GRAPHS = "training.disable_cuda_graphs"
_NUMBERS = (
    TENSOR,
    PIPELINE,
    CONTEXT,
    EXPERT,
    SHARD,
    REPLICATE,
    LOCAL_BATCH,
    GLOBAL_BATCH,
    SEQUENCE,
    STEPS,
)
# Keys that a recipe is judged by, beside those of its nodes.
_READ = frozenset({"recipe", "nodes", "args", "processes_per_node"})
# TorchTitan's word for the devices that are left.
_THE_REST = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """An accelerator as a process of torchrun has it: a GPU, or a logical NeuronCore.

    Attributes:
        name: Name of the accelerator.
        count: Devices of a node.
        memory_bytes: Memory of one.
        teraflops: Peak of one in BF16; None where no source states it.
    """

    name: str
    count: int
    memory_bytes: int
    teraflops: float | None

    @property
    def is_neuron(self) -> bool:
        """Whether it is a NeuronCore."""
        return self.name.startswith("AWS ")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Option:
    """An option among a job's arguments: where it stands, and its value."""

    at: int
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """A recipe with the options of a job, on its devices.

    Attributes:
        recipe: The recipe.
        device: A device.
        nodes: Nodes.
        division: Division of the model.
        global_batch: Sequences of a step.
        steps: Steps of the run.
        layout: Layout that the options changed.
    """

    recipe: Recipe
    device: Device
    nodes: int
    division: Division
    global_batch: int
    steps: int
    layout: Layout

    @property
    def devices(self) -> int:
        """Processes in all."""
        return self.nodes * self.device.count

    @property
    def memory(self) -> MemoryPlan:
        """Memory of the device that holds most."""
        return memory.memory_of(
            self.recipe.model, self.division, device_bytes=self.device.memory_bytes
        )


def recipe_of(request: JobRequest) -> Recipe | None:
    """Return the recipe that a job names; None where it names none, or one that is unknown."""
    job = request.job
    named = job.recipe if isinstance(job, config.TrainingJob) else None
    return None if named is None else recipes.RECIPES.get(named)


def applied(request: JobRequest, share: NodeShare, pools: Sequence[PoolPlan]) -> JobRequest:
    """Return a job whose recipe is written out as script, image and arguments.

    Args:
        request: The job; its recipe has no mistakes.
        share: What each of its pods may have of a node.
        pools: Pools that it may run on.
    """
    recipe = recipe_of(request)
    if recipe is None or not isinstance(request.job, config.TrainingJob):
        return request
    chosen = chosen_of(recipe, device_of(share, pools), request.job)
    if isinstance(chosen, str):
        return request
    script = recipes.NEURON_PROGRAM if chosen.device.is_neuron else recipes.PROGRAM
    changes: dict[str, object] = {
        "script": script,
        "image": image_of(request),
        "args": (
            *arguments_of(chosen, request.job.args, _places(request, recipe)),
            *request.job.args,
        ),
    }
    return replace(request, job=request.job.model_copy(update=changes))


def named(request: JobRequest) -> JobRequest:
    """Return a job with the script and the image of its recipe, but not its arguments."""
    job = request.job
    if not isinstance(job, config.TrainingJob) or job.recipe is None or job.script or job.command:
        return request
    changes = {"script": recipes.PROGRAM, "image": image_of(request)}
    return replace(request, job=request.job.model_copy(update=changes))


def image_of(request: JobRequest) -> str | None:
    """Return the image of a job with a recipe: its own, or the only one of ours for GPUs."""
    if request.job.image is not None:
        return request.job.image
    ours = [build.repository for build in request.builds if build.dockerfile == "nvidia"]
    return ours[0] if len(ours) == 1 and not _is_on_neuron(request) else None


def mistakes_of(
    request: JobRequest, share: NodeShare, pools: Sequence[PoolPlan], wrong: Collection[str] = ()
) -> Mistakes:
    """Yield what is wrong with a job's recipe on its nodes.

    Args:
        request: The job.
        share: What each of its pods may have of a node.
        pools: Pools that it may run on.
        wrong: Keys of the job with mistakes that are known.
    """
    recipe = recipe_of(request)
    if recipe is None or not isinstance(request.job, config.TrainingJob):
        return
    if not _READ.isdisjoint(wrong):
        return
    if no_numbers := [*_numbers(request.job)]:
        yield from no_numbers
        return
    device = device_of(share, pools)
    if device is None or device.name not in recipe.layouts:
        found = "no accelerators" if device is None else device.name
        where = ", ".join(sorted({pool.pool for pool in pools}))
        known = ", ".join(recipe.layouts)
        wrong_device = f"a recipe for {known}, and nodes of {where} have {found}"
        todo = "choose another pool, or write a script of your own"
        yield config.refuse(_KEY, wrong_device, todo)
        return
    if not device.is_neuron:
        yield from _has_data(request)
    elif not _neuron_config(recipe, device, request.job):
        wrong_config = "no configuration of TorchTitan Neuron that a source names for this model"
        todo = "add --config=NAME of your image to args"
        yield config.refuse(_KEY, wrong_config, todo)
    chosen = chosen_of(recipe, device, request.job)
    if isinstance(chosen, str):
        yield config.refuse("nodes", chosen, _degrees(recipe, device, request.job), got="")
        return
    yield from mistakes_in(chosen, request.job)


def mistakes_in(chosen: Chosen, job: config.TrainingJob) -> Mistakes:
    """Yield degrees and batches of a job that do not suit its model, or no device holds."""
    yield from _shape(chosen, job)
    if not chosen.memory.fits:
        yield _too_large(chosen)


def plan_recipe(
    request: JobRequest, share: NodeShare, pools: Sequence[PoolPlan]
) -> RecipePlan | None:
    """Return the recipe of a job without mistakes, on its nodes; None where it has none."""
    recipe, job = recipe_of(request), request.job
    if recipe is None or not isinstance(job, config.TrainingJob):
        return None
    chosen = chosen_of(recipe, device_of(share, pools), job)
    return None if isinstance(chosen, str) else plan_of(chosen)


def notes_of(plan: RecipePlan | None) -> Iterator[str]:
    """Yield what the user of a recipe reads before its nodes are paid for, each a sentence."""
    if plan is None:
        return
    degrees = " x ".join(
        f"{name} {degree}"
        for name, degree in (
            ("replicate", plan.replicate),
            ("shard", plan.shard),
            ("context", plan.context),
            ("tensor", plan.tensor),
            ("pipeline", plan.pipeline),
        )
        if degree > 1
    )
    experts = f", experts shared by {plan.expert}" if plan.expert > 1 else ""
    saved = f"checkpoints of {plan.checkpoint_bytes / 1e9:,.0f} GB"
    yield (
        f"Recipe {plan.name} ({plan.engine}): {plan.model} on {plan.devices} devices"
        f"{f' = {degrees}' if degrees else ''}{experts}; {plan.tokens_per_step:,} tokens a step "
        f"in about {plan.step_seconds:,.1f} s; {plan.memory.total / _GIB:,.0f} of "
        f"{plan.memory.device / _GIB:,.0f} GiB of each device; "
        f"{saved if plan.checkpoint_bytes else 'no checkpoints'}."
    )
    if plan.engine == recipes.NEURON_ENGINE:
        yield (
            f"{plan.engine} is in beta, and this recipe has not been run: its options are those of "
            f"AWS's pages, and checkpoints and progress are its own ({recipes.NEURON_SOURCE})."
        )
    if not plan.follows:
        yield (
            f"No source publishes a run of {plan.name} with these degrees on {plan.accelerator}: "
            "its memory and time are calculated."
        )


def plan_of(chosen: Chosen) -> RecipePlan:
    """Return a recipe with its options as a plan."""
    division, model = chosen.division, chosen.recipe.model
    engine = recipes.NEURON_ENGINE if chosen.device.is_neuron else recipes.ENGINE
    return RecipePlan(
        name=chosen.recipe.name,
        model=model.name,
        purpose=chosen.recipe.purpose,
        engine=engine,
        accelerator=chosen.device.name,
        nodes=chosen.nodes,
        devices=chosen.devices,
        tensor=division.tensor,
        pipeline=division.pipeline,
        context=division.context,
        expert=division.expert,
        shard=division.shard,
        replicate=division.replicate,
        recomputation=division.recomputation,
        sequence=division.sequence,
        local_batch=division.local_batch,
        global_batch=chosen.global_batch,
        steps=chosen.steps,
        parameters=model.parameters,
        memory=chosen.memory,
        checkpoint_bytes=memory.checkpoint_bytes(model, chosen.recipe.purpose),
        step_seconds=_step_seconds(chosen),
        follows=chosen.layout.source,
    )


def on_type(recipe: Recipe, spec: catalog.InstanceType) -> RecipePlan | None:
    """Return a recipe as it stands on whole nodes of a type.

    None where the recipe has no layout for it, or no source states what accelerators it has.
    """
    device = device_of_type(spec)
    if device is None or device.name not in recipe.layouts:
        return None
    chosen = chosen_of(recipe, device, config.TrainingJob(recipe=recipe.name, nodes=recipe.nodes))
    return None if isinstance(chosen, str) else plan_of(chosen)


def device_of_type(spec: catalog.InstanceType) -> Device | None:
    """Return a device of a whole node of a type; None where no source states what it has."""
    accelerator, facts = spec.accelerator, ("name", "count", "memory_mib_total")
    if accelerator is None or not all(accelerator.knows(fact) for fact in facts):
        return None
    return _device(accelerator, _total(accelerator))


def device_of(share: NodeShare, pools: Sequence[PoolPlan]) -> Device | None:
    """Return the smallest device among those of ``pools``; None where nodes have none.

    Raises:
        CatalogError: No source states a value of an instance type.
    """
    if not share.accelerators:
        return None
    found = (catalog.lookup(name).accelerator for pool in pools for name in pool.instance_types)
    devices = [_device(each, share.processes) for each in found if each is not None]
    return min(devices, key=lambda device: device.memory_bytes, default=None)


def chosen_of(recipe: Recipe, device: Device | None, job: config.TrainingJob) -> Chosen | str:
    """Return a recipe with a job's options, or why its degrees do not make up its devices."""
    layout = recipe.layouts.get(device.name) if device is not None else None
    if device is None or layout is None:
        return "nodes that the recipe has no layout for"
    numbers = _options(job.args)
    layout = replace(
        layout,
        tensor=_number(numbers, TENSOR, layout.tensor),
        pipeline=_number(numbers, PIPELINE, layout.pipeline),
        context=_number(numbers, CONTEXT, layout.context),
        expert=_number(numbers, EXPERT, layout.expert),
        local_batch=_number(numbers, LOCAL_BATCH, layout.local_batch),
        recomputation=_recomputation(job.args) or layout.recomputation,
        source=layout.source if not numbers and job.nodes == recipe.nodes else "",
    )
    per_node = job.processes_per_node or device.count
    devices, replicate = job.nodes * per_node, _number(numbers, REPLICATE, 1)
    shard = _number(numbers, SHARD, _THE_REST)
    others = replicate * layout.context * layout.tensor * layout.pipeline
    if others < 1 or devices % others or shard not in (_THE_REST, devices // others):
        told = f"{replicate} x {layout.context} x {layout.tensor} x {layout.pipeline}"
        mid = "" if shard == _THE_REST else f" x {shard}"
        return (
            f"{devices} devices, which replicate x context x tensor x pipeline{mid and ' x shard'} "
            f"= {told}{mid} = {others * (1 if shard == _THE_REST else shard)} does not make up"
        )
    division = Division(
        purpose=recipe.purpose,
        tensor=layout.tensor,
        pipeline=layout.pipeline,
        context=layout.context,
        expert=layout.expert,
        shard=devices // others,
        replicate=replicate,
        sequence=_number(numbers, SEQUENCE, recipe.sequence),
        local_batch=layout.local_batch,
        recomputation=layout.recomputation,
    )
    return Chosen(
        recipe=recipe,
        device=replace(device, count=per_node),
        nodes=job.nodes,
        division=division,
        global_batch=_number(numbers, GLOBAL_BATCH, recipe.global_batch),
        steps=_number(numbers, STEPS, recipe.steps),
        layout=layout,
    )


def _device(accelerator: catalog.Accelerator, processes: int) -> Device:
    total, peak = _total(accelerator), recipes.PEAK_TERAFLOPS.get(accelerator.name)
    return Device(
        name=accelerator.name,
        count=processes,
        memory_bytes=accelerator.memory_mib_total * _MIB // total,
        teraflops=None if peak is None else peak * accelerator.count / total,
    )


def _total(accelerator: catalog.Accelerator) -> int:
    neuron = accelerator.kind == "neuron"
    return accelerator.neuron_cores_logical if neuron else accelerator.count


def _is_on_neuron(request: JobRequest) -> bool:
    found = (
        catalog.lookup(name).accelerator for pool in request.nodes for name in pool.instance_types
    )
    return any(each is not None and each.kind == "neuron" for each in found)


def _has_data(request: JobRequest) -> Mistakes:
    """Yield a recipe without tokens to read, and a recomputation that TorchTitan has not."""
    args = request.job.args
    if not request.mounts and _flag(args, _DATA) is None:
        wrong = "a recipe without data: the job mounts no volume, and args have no --data"
        todo = "add a volume, or --data=FOLDER to args"
        yield config.refuse(_KEY, wrong, todo)
    option = _flag(args, _RECOMPUTATION)
    if option is not None and option.value not in get_args(Recomputation):
        todo = f"use {', '.join(get_args(Recomputation))}"
        yield config.refuse(f"args.{option.at}", f"not a value of {_RECOMPUTATION}", todo)


def _numbers(job: config.TrainingJob) -> Mistakes:
    """Yield degrees and batches that are no numbers."""
    for name, option in _options(job.args).items():
        low = 1 if name != SHARD else _THE_REST
        if not re.fullmatch(r"-?\d+", option.value) or int(option.value) < low:
            wrong = f"not a value of --{name}"
            yield config.refuse(f"args.{option.at}", wrong, "write a whole number from 1 on")


def _shape(chosen: Chosen, job: config.TrainingJob) -> Mistakes:
    """Yield degrees that do not divide the model or its batch.

    Source: https://github.com/pytorch/torchtitan/blob/v0.3.0/torchtitan/models/common/decoder.py
    """
    model, division = chosen.recipe.model, chosen.division
    for heads, of in ((model.heads, "heads"), (model.kv_heads, "key and value heads")):
        if heads % division.tensor:
            known = _divisors(math.gcd(model.heads, model.kv_heads))
            wrong = f"{of} of {model.name}, {heads}, that {division.tensor} devices cannot share"
            yield _at(job, TENSOR, wrong, f"write {known}")
            break
    if division.pipeline > model.layers:
        wrong = f"more stages than the {model.layers} layers of {model.name}"
        yield _at(job, PIPELINE, wrong, "write less")
    if division.local_batch < division.pipeline:
        wrong = f"{division.local_batch} passes for {division.pipeline} stages, most of which idle"
        yield _at(job, LOCAL_BATCH, wrong, f"write at least {division.pipeline}")
    parts = division.tensor * division.context * (2 if division.context > 1 else 1)
    if division.sequence % parts:
        wrong = f"tokens that {parts} parts of tensor and context cannot share"
        yield _at(job, SEQUENCE, wrong, f"write a multiple of {parts}")
    if division.sequence > model.longest_sequence:
        wrong = f"more tokens than the {model.longest_sequence:,} of a sequence of {model.name}"
        yield _at(job, SEQUENCE, wrong, "write less")
    yield from _experts(chosen, job)
    together = division.local_batch * division.shard * division.replicate
    if chosen.global_batch % together:
        near = [
            count
            for count in _nodes_that_share(chosen)
            if count * chosen.device.count >= division.tensor * division.pipeline
        ]
        above = math.ceil(chosen.global_batch / together) * together
        wrong = (
            f"{chosen.global_batch} sequences a step, which {division.shard * division.replicate} "
            f"groups of {division.local_batch} cannot share"
        )
        counts = f", or nodes: {near[-1]}" if near else ""
        yield _at(job, GLOBAL_BATCH, wrong, f"add --{GLOBAL_BATCH}={above} to args{counts}")


def _experts(chosen: Chosen, job: config.TrainingJob) -> Mistakes:
    model, division = chosen.recipe.model, chosen.division
    if division.expert == 1:
        return
    if not model.experts:
        yield _at(job, EXPERT, f"{model.name} has no experts", "leave it out")
        return
    if model.experts % division.expert:
        wrong = f"{model.experts} experts, which {division.expert} devices cannot share"
        yield _at(job, EXPERT, wrong, f"write {_divisors(model.experts)}")
    shared = division.shard * division.context * division.tensor
    if shared % division.expert:
        wrong = f"no part of the {shared} devices of shard x context x tensor"
        yield _at(job, EXPERT, wrong, f"write {_divisors(math.gcd(shared, model.experts))}")


def _nodes_that_share(chosen: Chosen) -> Sequence[int]:
    """Return the numbers of nodes below the job's on which its batch divides."""
    division = chosen.division
    group = division.context * division.tensor * division.pipeline
    return [
        nodes
        for nodes in range(1, chosen.nodes)
        if nodes * chosen.device.count % group == 0
        and chosen.global_batch % (nodes * chosen.device.count // group * division.local_batch) == 0
    ]


def _at(job: config.TrainingJob, option: str, wrong: str, todo: str) -> config.Mistake:
    """Return a mistake at the argument that states ``option``, or at the recipe without one."""
    found = _options(job.args).get(option)
    if found is None:
        return config.refuse(_KEY, wrong, todo)
    return config.refuse(f"args.{found.at}", wrong, todo)


def _too_large(chosen: Chosen) -> config.Mistake:
    found = chosen.memory
    wrong = (
        f"{found.total / _GIB:,.0f} GiB on an {chosen.device.name}, of which a program can use "
        f"{found.device / _GIB:,.0f} (states {found.states / _GIB:,.0f}, gathered "
        f"{found.gathered / _GIB:,.0f}, activations {found.activations / _GIB:,.0f}, logits "
        f"{found.logits / _GIB:,.0f}, reserved {found.reserved / _GIB:,.0f})"
    )
    ways = [*_ways(chosen)]
    todo = " or ".join(ways[:2]) if ways else "choose larger accelerators, or a smaller model"
    return config.refuse(_KEY, wrong, todo)


def _ways(chosen: Chosen) -> Iterator[str]:
    """Yield single changes that make the model fit, those that cost least first."""
    division, per_node = chosen.division, chosen.device.count
    batch = division.local_batch // 2
    while batch >= max(1, division.pipeline):
        if _fits(chosen, replace(division, local_batch=batch)):
            yield f"add --{LOCAL_BATCH}={batch} to args"
            break
        batch //= 2
    if division.recomputation != "full" and _fits(chosen, replace(division, recomputation="full")):
        yield f"add {_RECOMPUTATION}=full to args"
    model = chosen.recipe.model
    for option, key, most in (
        (TENSOR, "tensor", min(per_node, math.gcd(model.heads, model.kv_heads))),
        (CONTEXT, "context", per_node),
        (PIPELINE, "pipeline", min(division.local_batch, model.layers)),
    ):
        degree = getattr(division, key) * 2
        while degree <= most and division.shard * getattr(division, key) % degree == 0:
            shard = division.shard * getattr(division, key) // degree
            if _fits(chosen, replace(division, **{key: degree, "shard": shard})):
                yield f"add --{option}={degree} to args"
                break
            degree *= 2
    for times in (2, 4, 8, 16):
        larger = replace(division, shard=division.shard * times)
        together = larger.local_batch * larger.shard * larger.replicate
        if _fits(chosen, larger) and chosen.global_batch % together == 0:
            yield f"write nodes: {chosen.nodes * times}"
            break


def _fits(chosen: Chosen, division: Division) -> bool:
    return replace(chosen, division=division).memory.fits


def _degrees(recipe: Recipe, device: Device, job: config.TrainingJob) -> str:
    layout = recipe.layouts[device.name]
    own = layout.tensor * layout.pipeline * layout.context
    if any(name in _options(job.args) for name in (TENSOR, PIPELINE, CONTEXT, REPLICATE, SHARD)):
        return "change a degree of parallelism in args, or nodes"
    return f"use nodes of which {own} devices are a part: nodes: {recipe.nodes}, for example"


def _neuron_config(recipe: Recipe, device: Device, job: config.TrainingJob) -> str:
    """Return the configuration of TorchTitan Neuron: that of the arguments, or of the layout."""
    option = _flag(job.args, _CONFIG)
    return recipe.layouts[device.name].config if option is None else option.value


def _places(request: JobRequest, recipe: Recipe) -> Mapping[str, str]:
    """Return where a recipe finds tokens and weights that its job says nothing of."""
    if not request.mounts:
        return {}
    volume = request.mounts[0].mount_path.rstrip("/")
    places = {_DATA: f"{volume}/tokens/{recipe.model.family}"}
    if recipe.purpose in _LEARNS_FROM_WEIGHTS:
        places[_WEIGHTS] = f"{volume}/models/{recipe.model.weights}"
    return {flag: at for flag, at in places.items() if _flag(request.job.args, flag) is None}


def arguments_of(chosen: Chosen, stated: Sequence[str], places: Mapping[str, str]) -> Iterator[str]:
    """Yield the arguments of the program, but for those that the job states itself."""
    known = _options(stated)
    if chosen.device.is_neuron:
        yield f"--module={recipes.NEURON_MODULES}.{chosen.recipe.model.family}"
        if _flag(stated, _CONFIG) is None:
            yield f"{_CONFIG}={chosen.layout.config}"
    else:
        yield f"--recipe={chosen.recipe.name}"
        yield from (f"{flag}={place}" for flag, place in places.items())
        if _flag(stated, _RECOMPUTATION) is None:
            yield f"{_RECOMPUTATION}={chosen.division.recomputation}"
    division = chosen.division
    values: Mapping[str, int] = {
        STEPS: chosen.steps,
        SEQUENCE: division.sequence,
        LOCAL_BATCH: division.local_batch,
        GLOBAL_BATCH: chosen.global_batch,
        REPLICATE: division.replicate,
        SHARD: division.shard,
        TENSOR: division.tensor,
        PIPELINE: division.pipeline,
        CONTEXT: division.context,
        EXPERT: division.expert,
    }
    yield from (f"--{name}={value}" for name, value in values.items() if name not in known)
    graphs = division.pipeline == division.expert == 1
    if not graphs and not chosen.device.is_neuron and not _is_stated(stated, _NO_GRAPHS):
        # Source: https://github.com/pytorch/torchtitan/blob/v0.3.0/torchtitan/trainer.py
        yield f"--{_NO_GRAPHS}"


def _is_stated(args: Sequence[str], option: str) -> bool:
    return any(word.partition("=")[0].replace("-", "_") == f"__{option}" for word in args)


def _options(args: Sequence[str]) -> Mapping[str, _Option]:
    """Return the options of ``args`` that a plan reads; the last of a name wins, as in TorchTitan.

    `--training.steps=5` and `--training.steps 5` are the same, and so are `-` and `_` in names.
    """
    found: dict[str, _Option] = {}
    for number, word in enumerate(args):
        if (match := _OPTION.fullmatch(word)) is None:
            continue
        name = match[1].replace("-", "_")
        follows = args[number + 1] if number + 1 < len(args) else ""
        if name in _NUMBERS:
            found[name] = _Option(at=number, value=follows if match[2] is None else match[2])
    return found


def _number(options: Mapping[str, _Option], name: str, default: int) -> int:
    return int(options[name].value) if name in options else default


def _flag(args: Sequence[str], flag: str) -> _Option | None:
    """Return a flag of our own program; None where the arguments do not have it."""
    for number, word in reversed([*enumerate(args)]):
        name, equals, value = word.partition("=")
        if name == flag:
            follows = args[number + 1] if number + 1 < len(args) else ""
            return _Option(at=number, value=value if equals else follows)
    return None


def _recomputation(args: Sequence[str]) -> Recomputation | None:
    option = _flag(args, _RECOMPUTATION)
    known: Mapping[str, Recomputation] = {kind: kind for kind in get_args(Recomputation)}
    return None if option is None else known.get(option.value)


def _divisors(count: int) -> str:
    return ", ".join(str(part) for part in range(1, count + 1) if count % part == 0)


def _step_seconds(chosen: Chosen) -> float:
    """Return the seconds of a step at the utilization that TorchTitan has published.

    A token takes 6 operations for each parameter that it passes through, and 12 for each layer,
    head width and token that it attends to.

    Source: https://arxiv.org/abs/2204.02311 (appendix B)
    """
    if chosen.device.teraflops is None:
        return 0.0
    model, division = chosen.recipe.model, chosen.division
    attention = 12 * model.layers * model.query_width * division.sequence
    share = 1 / 3 if chosen.recipe.purpose == "evaluate" else 1
    operations = share * (6 * model.active_parameters + attention)
    rate = chosen.devices * chosen.device.teraflops * 1e12 * recipes.UTILIZATION
    return operations * division.sequence * chosen.global_batch / rate
