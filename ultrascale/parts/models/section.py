"""`jobs.NAME.model`: the language model of a service, and the figures of its memory."""

from typing import Annotated, Literal

from msgspec.structs import replace
from pydantic import Field, Tag

from ultrascale.catalog import integer_bounds
from ultrascale.catalog.language_models import known_models
from ultrascale.catalog.transformers import Transformer
from ultrascale.config._base import Model, chosen_by_form
from ultrascale.config._errors import Mistakes, near, refuse
from ultrascale.config._rules import rule
from ultrascale.config._values import known_in_schema
from ultrascale.config.jobs import Job
from ultrascale.config.services import Replicas

ModelName = Annotated[str, known_in_schema(known_models)]
WeightsType = Literal[
    "float32", "bfloat16", "float16", "fp8", "int8", "mxfp8", "int4", "mxfp4", "nvfp4"
]
_Count = Annotated[int, Field(ge=1, le=integer_bounds.MODEL_WIDTH)]


class ServedModel(Model):
    """A language model: the size of its weights and the figures of its `config.json`."""

    name: ModelName | None = None
    """A model whose figures are known, such as `Llama-3.1-8B`. Default: the other keys state them.
    """

    weights_gb: Annotated[float, Field(gt=0, le=integer_bounds.MODEL_GB)] | None = None
    """Size of all weight files in GB. Default: that of the known model in BF16."""

    dtype: WeightsType | None = None
    """Data type of most weights in the files. Default: `bfloat16`."""

    layers: _Count | None = None
    """Layers (`num_hidden_layers`). Default: the known model's."""

    heads: _Count | None = None
    """Heads of queries (`num_attention_heads`). Default: the known model's."""

    kv_heads: _Count | None = None
    """Heads of keys and values (`num_key_value_heads`). Default: the known model's."""

    head_width: _Count | None = None
    """Width of a head (`head_dim`). Default: the known model's."""

    latent_width: _Count | None = None
    """Values of a token in a layer with multi-head latent attention (`kv_lora_rank` and
    `qk_rope_head_dim`). Default: none, keys and values of each head.
    """

    attention_layers: _Count | None = None
    """Layers that keep keys and values; the others keep a state of fixed size. Default: all."""

    windowed_layers: _Count | None = None
    """Attention layers that see only the last `window` tokens. Default: none."""

    window: _Count | None = None
    """Tokens that those layers see (`sliding_window`). Default: none."""

    longest_context: _Count | None = None
    """Most tokens of a sequence (`max_position_embeddings`), which vLLM takes without
    `--max-model-len`. Default: the known model's, else unknown.
    """

    gb_per_second: Annotated[float, Field(gt=0, le=integer_bounds.MODEL_GB)] | None = None
    """Rate in GB/s at which a replica reads its weights, where you have measured it.

    Default: what the file system or the bucket of `--model` gives at best.
    """

    start_seconds: Annotated[int, Field(ge=1, le=integer_bounds.STARTUP_SECONDS)] | None = None
    """Seconds from a pod that waits for a node to answers, beside reading weights, where you have
    measured them. Default: an estimate for node, image and engine.
    """


StatedModel = Annotated[
    Annotated[ModelName, Tag("plain")] | Annotated[ServedModel, Tag("mapping")],
    chosen_by_form(ServedModel),
]


class ModelKeys(Replicas):
    """The key of a service that names its model."""

    model: StatedModel | None = None
    """Language model that it serves: the name of a known one, or its figures, as `ultrascale
    models` prints them. One that does not fit the devices is refused.

    Default: nothing is known of its memory and the time to load it.
    """


FIGURES = (
    "dtype",
    "layers",
    "heads",
    "kv_heads",
    "head_width",
    "latent_width",
    "attention_layers",
    "windowed_layers",
    "window",
    "longest_context",
)
"""Keys that are figures of `config.json`, named as those of `Transformer`."""
_UNKNOWN = Transformer(dtype="bfloat16", layers=1, heads=1, kv_heads=1, head_width=1)
_GB = 10**9
_SHAPE = ("weights_gb", "layers", "heads", "kv_heads", "head_width")


def model_of(job: Job) -> ServedModel | None:
    """Return the model that a job serves; None where it states none. A name is a known model's."""
    stated = job.model if isinstance(job, ModelKeys) else None
    return ServedModel(name=stated) if isinstance(stated, str) else stated


def transformer_of(model: ServedModel) -> Transformer | None:
    """Return the shape of a model; None where it has a mistake.

    Figures that are stated win over those of a known model.
    """
    known = known_models().get(model.name or "")
    if known is None and any(getattr(model, key) is None for key in _SHAPE):
        return None
    keys = {key: value for key in FIGURES if (value := getattr(model, key)) is not None}
    if model.weights_gb is not None:
        keys["weights_bytes"] = int(model.weights_gb * _GB)
    return replace(known or _UNKNOWN, **keys)


def _unknown_model(name: str, key: str) -> Mistakes:
    """Yield a model at ``key`` whose figures nobody knows."""
    if name not in known_models():
        todo = near(name, known_models())
        todo += "; of others `ultrascale models FILE BUCKET/PREFIX` prints the figures"
        yield refuse(key, "not a model whose figures are known", todo)


@rule
def served_models_are_known(job: ModelKeys) -> Mistakes:
    if isinstance(job.model, str):
        yield from _unknown_model(job.model, "model")


@rule
def model_is_known_or_stated(model: ServedModel) -> Mistakes:
    if model.name is not None:
        yield from _unknown_model(model.name, "name")
        return
    for key in _SHAPE:
        if key not in model.model_fields_set:
            todo = "add it from its config.json, or name a known model"
            yield refuse(key, "missing", todo, got="")


@rule
def heads_share_keys_and_values(model: ServedModel) -> Mistakes:
    if model.heads and model.kv_heads and model.heads % model.kv_heads:
        problem = f"not a divisor of the {model.heads} query heads"
        yield refuse("kv_heads", problem, "write num_key_value_heads of its config.json")


@rule
def layers_are_the_models(model: ServedModel) -> Mistakes:
    if model.attention_layers and model.layers and model.attention_layers > model.layers:
        yield refuse("attention_layers", f"more than the {model.layers} layers", "write less")
    attention = model.attention_layers or model.layers
    if model.windowed_layers and attention and model.windowed_layers > attention:
        problem = f"more than the {attention} layers with attention"
        yield refuse("windowed_layers", problem, "write less")


@rule
def windows_have_layers(model: ServedModel) -> Mistakes:
    if model.windowed_layers and not model.window:
        yield refuse("window", "missing beside windowed_layers", "add it", got="")
    if model.window and not model.windowed_layers:
        yield refuse("windowed_layers", "missing beside window", "add it", got="")
