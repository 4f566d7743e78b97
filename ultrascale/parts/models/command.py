"""`ultrascale models`: models in a bucket, and the cluster file's pools that can serve them."""

import json
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from rich.box import SIMPLE

from ultrascale import catalog
from ultrascale.catalog.transformers import Transformer
from ultrascale.cli import options
from ultrascale.cli.output import say
from ultrascale.cli.screen import Table, screen
from ultrascale.errors import UsageError
from ultrascale.frozen import Frozen, to_document
from ultrascale.jobs.preparation import read_cluster
from ultrascale.parts.models.bucket import (
    MOST_OBJECTS,
    FoundModel,
    Place,
    buckets_of_services,
    find_models,
    place_of,
)
from ultrascale.parts.models.fits import PoolFit, cheapest, fits_of
from ultrascale.parts.models.section import FIGURES
from ultrascale.yaml_writer import dump_flow

NOTHING_FOUND = 3
"""Exit status if the searched buckets hold no model."""

_GIB = 2**30


class _Row(Frozen):
    """A model in a bucket, and the pools that can serve it."""

    place: Place
    model: FoundModel
    shape: Transformer | None  # What its memory follows from; None where that cannot be read
    fits: tuple[PoolFit, ...]

    @property
    def path(self) -> str:
        return self.place.path_of(self.model.path)


def models_command(
    file: options.ClusterFile,
    place: Annotated[
        str | None,
        typer.Argument(
            metavar="BUCKET/PREFIX",
            help="A bucket of the file, or s3://NAME; by default the buckets that services mount.",
        ),
    ] = None,
    *,
    context: Annotated[
        int | None,
        typer.Option(
            min=1, help="Tokens of a sequence, at most; by default the model's own maximum."
        ),
    ] = None,
    profile: options.Profile = None,
    as_json: options.AllAsJson = False,
) -> None:
    """List the models in a bucket with their sizes, and the pools that each fits.

    Reads the sizes of objects, and each model's config.json and weight index. Prints the `model`
    section to paste into a service. Ends with status 3 if there is no model.
    """
    from ultrascale.account import connect

    cluster = read_cluster(file)
    asked = [place] if place is not None else [*buckets_of_services(cluster.cluster)]
    if not asked:
        raise UsageError(["BUCKET: no bucket of the file has a claim; name one, or s3://NAME"])
    account = connect(cluster.cluster.region, profile)
    rows: list[_Row] = []
    for name in asked:
        where = place_of(account, cluster.cluster, name)
        listing = find_models(account, where.s3_name, where.prefix)
        if not listing.complete:
            say(f"{name}: only the first {MOST_OBJECTS:,} objects; name a prefix", err=True)
        for model in listing.models:
            shape = model.shape
            pools, region = cluster.plan.all_pools, cluster.plan.region
            fits = () if shape is None else fits_of(shape, pools, context=context, region=region)
            rows.append(_Row(place=where, model=model, shape=shape, fits=fits))
    if as_json:
        typer.echo(json.dumps([_document(row) for row in rows], indent=2))
    elif rows:
        _print(rows, context)
    if not rows:
        say(f"no folder with a config.json and weights in {', '.join(asked)}", err=True)
        raise typer.Exit(NOTHING_FOUND)


def _print(rows: Sequence[_Row], context: int | None) -> None:
    table = Table(
        "model",
        "GB",
        "files",
        "type",
        "KV cache a token",
        "longest context",
        box=SIMPLE,
    )
    for row in rows:
        figures = row.model.figures
        table.add_row(
            row.path,
            f"{row.model.weights_bytes / 1e9:,.1f}",
            f"{row.model.files:,}",
            "" if figures is None else figures.dtype,
            "" if row.shape is None else f"{row.shape.token_bytes / 1000:,.1f} KB",
            ""
            if figures is None or not figures.longest_context
            else f"{figures.longest_context:,}",
        )
    screen().print(table)
    for row in rows:
        say("")
        for line in _lines(row, context):
            say(line)


def _scores(model: FoundModel) -> Iterator[str]:
    if model.evaluation:
        figures = (f"{name} {value:.4g}" for name, value in model.evaluation.items())
        yield f"  evaluated: {', '.join(figures)}"


def _lines(row: _Row, context: int | None) -> Iterator[str]:
    yield row.path
    if row.model.problem:
        yield f"  {row.model.problem}"
    yield from _scores(row.model)
    own = None if row.model.figures is None else row.model.figures.longest_context
    if context is not None and own is not None and context > own:
        yield f"  judged with {own:,} tokens, the model's own maximum: --context is larger"
    for fit in row.fits:
        yield f"  {fit.pool} ({fit.instance_type}): {_verdict(fit)}"
    if row.model.figures is None or row.model.problem:
        return
    best = cheapest(row.fits)
    yield "  to paste into a service:"
    if best is not None and best.division is not None:
        yield f"    pool: {best.pool}"
        if best.nodes > 1:
            yield f"    nodes: {best.nodes}"
        if row.place.namespace:
            yield f"    namespace: {row.place.namespace}"
        yield f"    args: {dump_flow([*_args(row, best)])}"
        if (part := _part(best)) is not None:
            yield f"    resources: {{{part}}}"
    yield "    model:"
    for key, value in row.model.keys.items():
        yield f"      {key}: {value}"


def _part(fit: PoolFit) -> str | None:
    """Return the devices of a pod on a part of a node; None if it takes the whole node."""
    accelerator = catalog.lookup(fit.instance_type).accelerator
    if fit.division is None or fit.device is None or accelerator is None or fit.nodes > 1:
        return None
    if accelerator.kind == "nvidia":
        return f"gpu: {fit.division.tensor}" if fit.division.tensor < fit.device.count else None
    # Kubernetes gives out whole chips, either one or all.
    alone = fit.division.tensor <= fit.device.count // accelerator.count and accelerator.count > 1
    return "neuron: 1" if alone else None


def _args(row: _Row, fit: PoolFit) -> Iterator[str]:
    assert fit.division is not None
    assert fit.device is not None
    yield f"--model={row.path}"
    if fit.division.tensor > 1:
        yield f"--tensor-parallel-size={fit.division.tensor}"
    if fit.division.pipeline > 1:
        yield f"--pipeline-parallel-size={fit.division.pipeline}"
    if fit.division.context is not None:
        yield f"--max-model-len={fit.division.context}"
    if row.place.mount_path and not fit.device.is_neuron:
        # Otherwise vLLM reads small parts of files that are mapped into memory.
        yield "--safetensors-load-strategy=prefetch"


def _verdict(fit: PoolFit) -> str:
    if fit.division is None or fit.memory is None or fit.device is None:
        return fit.reason
    memory, division = fit.memory, fit.division
    held = f"{memory.weights / _GIB:,.1f} GiB of weights"
    length = "" if division.context is None else f" of {division.context:,} tokens"
    if not fit.nodes:
        shorter = f"; --context {memory.longest} would fit" if memory.longest else ""
        return (
            f"too large: {held} and {memory.sequence / _GIB:,.1f} GiB for a sequence{length}, of "
            f"{memory.device / _GIB:,.1f} GiB of each {fit.device.name}{shorter}"
        )
    nodes = "" if fit.nodes == 1 else f" on {fit.nodes} nodes"
    tight = ", tight" if memory.fit == "tight" else ""
    count = f"{division.devices} x {fit.device.name}{nodes}"
    words = f"{count}{tight}: {held} each, {memory.sequences:,.1f} sequences{length} at a time"
    if fit.usd_per_hour is None:
        return words
    whole = "the whole node" if fit.nodes == 1 else f"the {fit.nodes} nodes"
    price = f"{fit.usd_per_hour:,.2f} USD an hour On-Demand in {fit.price_region}"
    return f"{words}; {whole} for {price}"


def _document(row: _Row) -> dict[str, object]:
    shape = row.model.figures
    figures = None if shape is None else {key: getattr(shape, key) for key in FIGURES}
    return {
        "bucket": row.place.bucket,
        "s3_name": row.place.s3_name,
        **to_document(row.model),
        "figures": figures,
        "path": row.path,
        "model": dict(row.model.keys),
        "fits": [to_document(fit) for fit in row.fits],
    }
