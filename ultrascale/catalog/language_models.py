"""Language models with a known `config.json`, cut to the figures that determine memory."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from msgspec.structs import replace

from ultrascale.catalog.transformers import Transformer, transformer_of
from ultrascale.documents import Json, mapping, read_json

_FILE = Path(__file__).with_suffix(".json")
_BF16_BYTES = 2


@cache
def known_models() -> Mapping[str, Transformer]:
    """Return the models by the folder of their published weights; weights are in BF16."""
    entries: Mapping[str, Json] = read_json(_FILE)
    models = (_model(name, mapping(entry)) for name, entry in entries.items())
    return MappingProxyType({model.folder: model for model in models})


def _model(name: str, entry: Mapping[str, Json]) -> Transformer:
    model = replace(transformer_of(mapping(entry["config"])), name=name)
    return replace(model, weights_bytes=_BF16_BYTES * model.parameters)
