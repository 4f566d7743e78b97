"""Named resources of TorchX: one for each instance type to train on.

The build of the package writes them as entry points, see `hatch_build.py`.
"""

from collections.abc import Mapping

from ultrascale.catalog.instance_types import INSTANCE_TYPES

PREFIX = "eks_"
_MODULE = "ultrascale_torchx.resources"


def named_resources() -> Mapping[str, str]:
    """Return each named resource's object reference, by the name that TorchX users write."""
    return {
        f"{PREFIX}{instance_type}": f"{_MODULE}:{attribute}"
        for attribute, instance_type in attributes().items()
    }


def attributes() -> Mapping[str, str]:
    """Return the instance type behind each attribute of `ultrascale_torchx.resources`."""
    return {
        name.replace("-", "_").replace(".", "_"): name
        for name, spec in INSTANCE_TYPES.items()
        if spec.announced and spec.for_training
    }
