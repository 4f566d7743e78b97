"""Values of templates and manifests, of which only some are what is looked for."""

from collections.abc import Mapping, Sequence
from typing import cast


def mapping(value: object) -> Mapping[str, object]:
    """Return ``value`` if it is a mapping, or an empty one."""
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}


def sequence(value: object) -> Sequence[object]:
    """Return ``value`` if it is a list, or an empty one."""
    return cast("Sequence[object]", value) if isinstance(value, list) else ()
