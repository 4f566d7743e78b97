"""What stands in the manifests for values that CloudFormation alone knows."""

from collections.abc import Mapping

from ultrascale_constructs.platform import Manifest


def fill(manifest: Manifest, placeholders: Mapping[str, str]) -> Manifest:
    """Replace every value that is a placeholder by what it stands for."""
    return {key: _filled(value, placeholders) for key, value in manifest.items()}


def _filled(value: object, placeholders: Mapping[str, str]) -> object:
    match value:
        case str():
            return placeholders.get(value, value)
        case Mapping():
            return {key: _filled(item, placeholders) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case list():
            return [_filled(item, placeholders) for item in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case _:
            return value
