"""Reads the instance catalog."""

from collections.abc import Mapping
from types import MappingProxyType

from ultrascale.catalog._model import InstanceSpec
from ultrascale.catalog._near import did_you_mean
from ultrascale.catalog._sources import read_table
from ultrascale.errors import CatalogError

INSTANCE_TYPES: Mapping[str, InstanceSpec] = MappingProxyType(
    {
        row["instance_type"]: InstanceSpec(row["instance_type"], MappingProxyType(dict(row)))
        for row in read_table("instances.csv")
    }
)


def lookup(instance_type: str) -> InstanceSpec:
    """Return the catalog entry of an EC2 instance type.

    Args:
        instance_type: Its EC2 name, without SageMaker's ``ml.``.

    Raises:
        CatalogError: The catalog has no such type; the message names the nearest one.
    """
    try:
        return INSTANCE_TYPES[instance_type]
    except KeyError:
        hint = did_you_mean(instance_type, INSTANCE_TYPES)
        fallback = "the catalog's types are in ultrascale/catalog/instances.csv"
        message = f"unknown instance type {instance_type!r}; {hint or fallback}"
        raise CatalogError(message) from None
