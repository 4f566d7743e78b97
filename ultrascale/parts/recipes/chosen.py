"""A recipe with the options of a job, on its devices."""

from msgspec.structs import replace

from ultrascale import catalog, config
from ultrascale.frozen import Frozen
from ultrascale.parts.recipes import memory, options
from ultrascale.parts.recipes import table as recipes
from ultrascale.parts.recipes.memory import Division, MemoryPlan
from ultrascale.parts.recipes.table import Layout, Recipe
from ultrascale.plan.jobs.devices import Device, device_of_type


class Chosen(Frozen):
    """A recipe with the options of a job, on its devices."""

    recipe: Recipe  # The recipe
    device: Device  # A device
    nodes: int  # Nodes
    least_nodes: int  # Nodes with which an elastic job goes on; those of any other
    division: Division  # Division of the model on all of them
    global_batch: int  # Sequences of a step
    steps: int  # Steps of the run
    layout: Layout  # Layout that the options changed
    float8: bool  # Whether matrices are multiplied in Float8

    @property
    def devices(self) -> int:
        """Processes in all."""
        return self.nodes * self.device.count

    @property
    def memory(self) -> MemoryPlan:
        """Memory of the device that holds most, on the fewest nodes."""
        division = self.division
        shard = self.least_nodes * self.device.count // division.others
        return memory.memory_of(
            self.recipe.model,
            replace(division, shard=max(1, shard)),
            device_bytes=self.device.memory_bytes,
        )

    @property
    def engine(self) -> str:
        """Program that runs it, with its version."""
        return recipes.NEURON_ENGINE if self.device.is_neuron else recipes.ENGINE

    @property
    def tokens_per_step(self) -> int:
        """Tokens of a step."""
        return self.division.sequence * self.global_batch

    @property
    def checkpoint_bytes(self) -> int:
        """Size of a checkpoint."""
        return memory.checkpoint_bytes(self.recipe.model)

    @property
    def copied_bytes(self) -> int | None:
        """Bytes that each process copies while training waits for a save.

        None where training waits for the whole write: TorchTitan Neuron, by the default of
        `--checkpoint.async_mode` in TorchTitan 0.2.2 [inferred].

        Source: https://github.com/pytorch/torchtitan/blob/v0.2.2/torchtitan/config/job_config.py
        """
        if self.device.is_neuron:
            return None
        return self.checkpoint_bytes * self.division.replicate // self.devices

    @property
    def degrees(self) -> str:
        """Degrees above 1, of which the product is the number of devices."""
        names = ("replicate", "shard", "context", "tensor", "pipeline")
        degrees = {name: getattr(self.division, name) for name in names}
        return " x ".join(f"{name} {degree}" for name, degree in degrees.items() if degree > 1)

    def shares_on(self, nodes: int) -> bool:
        """Return whether degrees and batch suit a number of nodes."""
        division, devices = self.division, nodes * self.device.count
        if devices % division.others:
            return False
        shard = devices // division.others
        together = division.local_batch * shard * division.replicate
        experts_share = shard * division.context * division.tensor % division.expert == 0
        return self.global_batch % together == 0 and experts_share


def chosen_of(recipe: Recipe, device: Device | None, job: config.TrainingJob) -> Chosen | str:
    """Return a recipe with a job's options, or why its degrees do not make up its devices."""
    layout = recipe.layouts.get(device.name) if device is not None else None
    if device is None or layout is None:
        return "nodes that the recipe has no layout for"
    stated = options.read(job.args)
    layout = replace(
        layout,
        tensor=stated.number(options.TENSOR, layout.tensor),
        pipeline=stated.number(options.PIPELINE, layout.pipeline),
        context=stated.number(options.CONTEXT, layout.context),
        expert=stated.number(options.EXPERT, layout.expert),
        local_batch=stated.number(options.LOCAL_BATCH, layout.local_batch),
        recomputation=stated.recomputation or layout.recomputation,
        source=layout.source if stated.keeps_layout and job.nodes == recipe.nodes else "",
    )
    per_node = job.processes_per_node or device.count
    devices, replicate = job.nodes * per_node, stated.number(options.REPLICATE, 1)
    shard = stated.number(options.SHARD, options.THE_REST)
    others = replicate * layout.context * layout.tensor * layout.pipeline
    if devices % others or shard not in (options.THE_REST, devices // others):
        degrees = f"{replicate} x {layout.context} x {layout.tensor} x {layout.pipeline}"
        named, made = "replicate x context x tensor x pipeline", others
        if shard != options.THE_REST:
            named, degrees, made = f"{named} x shard", f"{degrees} x {shard}", others * shard
        return f"{devices} devices, which {named} = {degrees} = {made} does not make up"
    division = Division(
        tensor=layout.tensor,
        pipeline=layout.pipeline,
        context=layout.context,
        expert=layout.expert,
        shard=devices // others,
        replicate=replicate,
        sequence=stated.number(options.SEQUENCE, recipe.sequence),
        local_batch=layout.local_batch,
        microbatch=stated.number(options.MICROBATCH, 1),
        recomputation=layout.recomputation,
        # It takes minutes at each start.
        compiled=not device.is_neuron and options.NOT_COMPILED not in stated,
    )
    return Chosen(
        recipe=recipe,
        device=replace(device, count=per_node),
        nodes=job.nodes,
        least_nodes=job.min_nodes or job.nodes,
        division=division,
        global_batch=stated.number(options.GLOBAL_BATCH, recipe.global_batch),
        steps=stated.number(options.STEPS, recipe.steps),
        layout=layout,
        float8=_in_float8(recipe, device, stated),
    )


def _in_float8(recipe: Recipe, device: Device, stated: options.Options) -> bool:
    named = stated.get(options.MATRICES)
    if named is not None:
        return named.value == options.FLOAT8
    return recipe.float8 and device.name in recipes.FLOAT8_DEVICES


def on_type(recipe: Recipe, spec: catalog.InstanceType) -> Chosen | None:
    """Return a recipe as it stands on whole nodes of a type.

    None where the recipe has no layout for it, or no source states what accelerators it has.
    """
    device = device_of_type(spec)
    if device is None or device.name not in recipe.layouts:
        return None
    chosen = chosen_of(recipe, device, config.TrainingJob(nodes=recipe.nodes))
    return None if isinstance(chosen, str) else chosen


def step_of(chosen: Chosen) -> tuple[float, str]:
    """Return the seconds of a step, and the source of the speed; empty for an assumed one.

    A published speed counts as its share of the device's peak, so that other lengths and numbers
    of devices follow from it. A token takes 2 operations for each parameter that it passes
    through, and 4 for each layer, head width and token that it attends to; gradients take twice as
    much.

    Source: https://arxiv.org/abs/2204.02311 (appendix B)
    """
    peak = recipes.PEAK_TERAFLOPS.get(chosen.device.name)
    if peak is None:
        return 0.0, ""
    recipe, division, speed = chosen.recipe, chosen.division, chosen.layout.speed
    share, source = recipes.ASSUMED_SHARE, ""
    if recipe.model.experts:
        share = recipes.ASSUMED_SHARE_OF_MIXTURES
    as_published = recipe.layouts[chosen.device.name].recomputation == division.recomputation
    float8 = recipe.float8 and chosen.device.name in recipes.FLOAT8_DEVICES
    if speed is not None and as_published and division.compiled and chosen.float8 == float8:
        measured = speed.tokens_per_second * _operations(recipe, recipe.sequence) / peak / 1e12
        share, source = speed.share or measured, speed.source
    rate = chosen.devices * (peak * chosen.device.share) * 1e12 * share
    tokens = division.sequence * chosen.global_batch
    return _operations(recipe, division.sequence) * tokens / rate, source


def _operations(recipe: Recipe, sequence: int) -> float:
    """Return the operations of a token in a sequence of a length."""
    model = recipe.model
    attention = 4 * model.layers * model.query_width * sequence
    return 3 * (2 * model.active_parameters + attention)
