"""EC2's descriptions of its instance types, as moto has recorded them."""

import gzip
import json
from functools import cache
from importlib.resources import files
from typing import Any, cast


@cache
def recorded_types() -> dict[str, dict[str, Any]]:
    """Return an answer of DescribeInstanceTypes for each type, by name."""
    packed = files("moto") / "ec2" / "resources" / "instance_types.json.gz"
    return cast("dict[str, dict[str, Any]]", json.loads(gzip.decompress(packed.read_bytes())))
