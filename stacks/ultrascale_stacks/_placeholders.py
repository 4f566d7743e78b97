"""What stands in the manifests for values that CloudFormation alone knows."""

import re
from collections.abc import Mapping

from ultrascale_constructs.platform import Manifest

_PLACEHOLDER = re.compile(r"\$\{[A-Z0-9_]+\}")


def fill(manifest: Manifest, placeholders: Mapping[str, str]) -> Manifest:
    """Replace every placeholder by what it stands for; other words in ``${}`` stay as they are."""
    return {key: _filled(value, placeholders) for key, value in manifest.items()}


def _filled(value: object, placeholders: Mapping[str, str]) -> object:
    match value:
        case str():
            return _PLACEHOLDER.sub(lambda found: placeholders.get(found[0], found[0]), value)
        case Mapping():
            return {key: _filled(item, placeholders) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case list():
            return [_filled(item, placeholders) for item in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case _:
            return value
