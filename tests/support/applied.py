"""Objects as the API server gets them."""

from collections.abc import Iterable
from typing import Any

import yaml

from ultrascale import yaml_writer
from ultrascale.documents import JsonObject


def applied(objects: Iterable[JsonObject]) -> list[dict[str, Any]]:
    """Return ``objects`` as their file says them."""
    return [*yaml.load_all(yaml_writer.dump_all(objects), Loader=yaml.CSafeLoader)]
