"""Shapes of models: of those that are known, and of those that a job states."""

from ultrascale.catalog.language_models import LanguageModel
from ultrascale.plan.model.models import ModelShape

_HALF = 2


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
