"""Arguments that a recipe's program is started with."""

from collections.abc import Iterator, Mapping, Sequence

from ultrascale.catalog import recipes
from ultrascale.plan.recipes import options
from ultrascale.plan.recipes.chosen import Chosen


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
        words = {options.CONFIG: chosen.layout.config, **places}
        if options.FOLDER in places and options.SAVES not in known:
            yield f"--{options.SAVES}"
        if known.names_folder:
            words.pop(options.FOLDER, None)
    else:
        yield f"--recipe={chosen.recipe.name}"
        words = {**places, options.RECOMPUTATION: division.recomputation}
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
