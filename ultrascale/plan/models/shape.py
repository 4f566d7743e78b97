"""Shapes of models: of those that are known, and of those that a job states."""

from ultrascale import config
from ultrascale.catalog import language_models
from ultrascale.catalog.language_models import LanguageModel
from ultrascale.plan.model.models import ModelShape

_HALF = 2
_GB = 10**9


def of_known(model: LanguageModel) -> ModelShape:
    """Return the shape of a model of the catalog, with weights in BF16 as they are published."""
    return ModelShape(
        weights_bytes=_HALF * model.parameters,
        dtype="bfloat16",
        layers=model.layers,
        attention_layers=model.layers,
        heads=model.heads,
        kv_heads=model.kv_heads,
        head_width=model.head_width,
        longest_context=model.longest_sequence,
    )


def of_stated(stated: str | config.ServedModel) -> ModelShape | None:
    """Return the shape of the model of a job; None where it has a mistake.

    Figures that the job states win over those of a known model.
    """
    model = config.served_model(stated)
    known = language_models.MODELS.get(model.name or "")
    base = None if known is None else of_known(known)

    def figure(name: str) -> int | None:
        own: int | None = getattr(model, name)
        return own if own is not None or base is None else getattr(base, name)

    layers, heads = figure("layers"), figure("heads")
    kv_heads, width = figure("kv_heads"), figure("head_width")
    weights = base.weights_bytes if base is not None else None
    if model.weights_gb is not None:
        weights = int(model.weights_gb * _GB)
    if None in (layers, heads, kv_heads, width, weights):
        return None
    return ModelShape(
        weights_bytes=weights or 0,
        dtype=model.dtype or "bfloat16",
        layers=layers or 0,
        attention_layers=model.attention_layers or layers or 0,
        heads=heads or 0,
        kv_heads=kv_heads or 0,
        head_width=width or 0,
        latent_width=model.latent_width or 0,
        windowed_layers=model.windowed_layers or 0,
        window=model.window or 0,
        longest_context=figure("longest_context"),
    )
