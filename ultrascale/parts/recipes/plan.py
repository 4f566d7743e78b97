"""Recipe of a job: its program, its notes for the user, and its mistakes."""

from collections.abc import Iterator, Mapping, Sequence

from ultrascale import catalog, config
from ultrascale.parts.recipes import memory, options
from ultrascale.parts.recipes import table as recipes
from ultrascale.parts.recipes.chosen import Chosen, chosen_of, step_of
from ultrascale.parts.recipes.section import recipe_of
from ultrascale.parts.recipes.table import Recipe
from ultrascale.plan.jobs.devices import Device, smallest_device
from ultrascale.plan.jobs.nodes import NodeShare
from ultrascale.plan.jobs.output import plan_output
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.model.jobs import ProgramPlan

Mistakes = Iterator[config.Mistake]

_GIB = 2**30


def plan_program(request: JobRequest, share: NodeShare | None) -> ProgramPlan | None:
    """Return the program of a job's recipe; None where it has none, or one with a mistake."""
    job, name = request.job, recipe_of(request.job)
    if name is None or not isinstance(job, config.TrainingJob):
        return None
    if share is None:
        script = job.script if job.script or job.command else recipes.PROGRAM
        return ProgramPlan(script=script, image=_image(request))
    recipe, device = recipes.RECIPES.get(name), smallest_device(share, request.nodes)
    if recipe is None or isinstance(chosen := chosen_of(recipe, device, job), str):
        return None
    places = _places(request, recipe, chosen.device)
    return ProgramPlan(
        script=recipes.NEURON_PROGRAM if chosen.device.is_neuron else recipes.PROGRAM,
        image=_image(request),
        args=tuple(arguments_of(chosen, job.args, places)),
        model=recipe.model.name,
        steps=chosen.steps,
        step_seconds=step_of(chosen)[0],
        interval_option=options.INTERVAL,
        checkpoint_bytes=chosen.checkpoint_bytes,
        kept=0 if chosen.device.is_neuron else _kept(job),
        copied_bytes=chosen.copied_bytes,
        notes=tuple(_notes(chosen)),
    )


def largest_program(device: Device, nodes: int) -> ProgramPlan | None:
    """Return the program that pre-trains the largest model whose states some nodes hold."""
    held = nodes * device.count * device.memory_bytes
    fitting = (
        recipe
        for recipe in recipes.RECIPES.values()
        if device.name in recipe.layouts and memory.TRAINED_BYTES * recipe.model.parameters <= held
    )
    largest = max(fitting, key=lambda recipe: recipe.model.parameters, default=None)
    if largest is None:
        return None
    size = memory.checkpoint_bytes(largest.model)
    return ProgramPlan(
        script=recipes.PROGRAM,
        image=None,
        model=largest.model.name,
        checkpoint_bytes=size,
        copied_bytes=None if device.is_neuron else size // (nodes * device.count),
    )


def _kept(job: config.TrainingJob) -> int:
    stated = options.read(job.args).get(options.KEEP)
    return options.KEPT if stated is None or not stated.value.isdecimal() else int(stated.value)


def _image(request: JobRequest) -> str | None:
    """Return the image of a job with a recipe: its own, or the only one of ours for GPUs."""
    if request.job.image is not None:
        return request.job.image
    ours = [build.repository for build in request.builds if build.dockerfile == "nvidia"]
    return ours[0] if len(ours) == 1 and not _is_on_neuron(request) else None


def _notes(chosen: Chosen) -> Iterator[str]:
    """Yield the notes on a recipe that its user reads before paying for nodes, each a sentence."""
    name, expert, held = chosen.recipe.name, chosen.division.expert, chosen.memory
    experts = f", experts shared by {expert}" if expert > 1 else ""
    degrees = f" = {chosen.degrees}" if chosen.degrees else ""
    made = ", compiled" * chosen.division.compiled + ", in Float8" * chosen.float8
    yield (
        f"Recipe {name} ({chosen.engine}): {chosen.recipe.model.name} on {chosen.devices} devices"
        f"{degrees}{experts}{made}; {chosen.tokens_per_step:,} tokens a step "
        f"{_step_text(chosen)}; {held.total / _GIB:,.0f} of {held.device / _GIB:,.0f} GiB of each "
        f"device; checkpoints of {chosen.checkpoint_bytes / 1e9:,.0f} GB."
    )
    if chosen.device.is_neuron:
        yield (
            f"{chosen.engine} is in beta, and this recipe has not been run: data and first weights "
            "are those of its --config, other options those of AWS's pages, checkpoints and "
            f"progress its own ({recipes.NEURON_SOURCE})."
        )
    if not chosen.layout.source:
        yield (
            f"No source publishes a run of {name} with these degrees on {chosen.device.name}: "
            "its memory is calculated."
        )


def _step_text(chosen: Chosen) -> str:
    """Return the time of a step in words; what nobody has measured is said to be so."""
    seconds, source = step_of(chosen)
    about = f"about {seconds:,.1f} s"
    if source:
        return f"in {about} ({source})"
    return f"in a time that no source states ({about} at the share of the peak that we assume)"


def _is_on_neuron(request: JobRequest) -> bool:
    names = (name for pool in request.nodes for name in pool.instance_types)
    accelerators = (catalog.lookup(name).accelerator for name in names)
    return any(item is not None and item.kind == "neuron" for item in accelerators)


def _places(request: JobRequest, recipe: Recipe, device: Device) -> Mapping[str, str]:
    """Return the folders of a recipe by flag, those that its job may state otherwise."""
    if device.is_neuron:
        place = plan_output(request)
        return {} if place is None else {options.FOLDER: place.place}
    if not request.mounts:
        return {}
    volume = request.mounts[0].mount_path.rstrip("/")
    return {options.DATA: f"{volume}/tokens/{recipe.family}"}


def arguments_of(chosen: Chosen, stated: Sequence[str], places: Mapping[str, str]) -> Iterator[str]:
    """Yield the arguments of the program, but for those that the job states itself.

    Args:
        chosen: The recipe on its devices.
        stated: Arguments of the job.
        places: Folders by flag.
    """
    known = options.read(stated)
    division, neuron = chosen.division, chosen.device.is_neuron
    if neuron:
        yield f"--module={recipes.NEURON_MODULES}.{chosen.recipe.family}"
        words = {**places}
        if options.FOLDER in places and options.SAVES not in known:
            yield f"--{options.SAVES}"
        if known.names_folder:
            words.pop(options.FOLDER, None)
    else:
        yield f"--recipe={chosen.recipe.name}"
        words = {**places, options.RECOMPUTATION: division.recomputation}
        if division.compiled and options.COMPILE not in known:
            yield f"--{options.COMPILE}"
        if chosen.float8 and options.MATRICES not in known:
            yield f"{options.MATRICES}={options.FLOAT8}"
    yield from (f"{flag}={value}" for flag, value in words.items() if flag not in known)
    # A world that changes its size has another number of shards each time.
    elastic = chosen.least_nodes < chosen.nodes
    values: Mapping[str, int] = {
        options.STEPS: chosen.steps,
        options.SEQUENCE: division.sequence,
        options.LOCAL_BATCH: division.local_batch,
        options.GLOBAL_BATCH: chosen.global_batch,
        options.REPLICATE: division.replicate,
        options.SHARD: options.THE_REST if elastic else division.shard,
        options.TENSOR: division.tensor,
        options.PIPELINE: division.pipeline,
        options.CONTEXT: division.context,
        options.EXPERT: division.expert,
    }
    yield from (f"--{name}={value}" for name, value in values.items() if name not in known)
    graphs = division.pipeline == division.expert == 1
    if not graphs and not neuron and options.NO_GRAPHS not in known:
        # Source: https://github.com/pytorch/torchtitan/blob/v0.3.0/torchtitan/trainer.py
        yield f"--{options.NO_GRAPHS}"
