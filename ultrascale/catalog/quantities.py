"""Kubernetes quantities: their grammar, their conversion to whole numbers, and plausible amounts.

Source: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
"""

import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from types import MappingProxyType

from ultrascale.catalog.integer_bounds import INT64
from ultrascale.frozen import Frozen

_PARTS = re.compile(
    r"(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?P<unit>[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,3})?"
)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_MIB = 2**20
# Most digits of a quantity's number.
_LONGEST = 40


class Bounds(Frozen):
    """Least and greatest plausible amount of a resource in a request of a pod or a queue."""

    least: Decimal  # The least
    greatest: Decimal  # The greatest
    written: str  # The least, in a user's spelling


# Kubernetes counts CPU in thousandths at the finest, in an integer of 64 bits.
# Source: https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/#meaning-of-cpu
CPU = Bounds(least=Decimal("0.001"), greatest=Decimal(INT64) / 1000, written="1m")
# No program starts in less memory, and `400m` is 0.4 bytes.
# Source: https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/#meaning-of-memory
MEMORY = Bounds(least=Decimal(_MIB), greatest=Decimal(INT64), written="1Mi")
# Devices come in whole numbers.
# Source: https://kubernetes.io/docs/tasks/configure-pod-container/extended-resource/
DEVICES = Bounds(least=Decimal(0), greatest=Decimal(INT64), written="0")

OF_RESOURCE: Mapping[str, Bounds] = MappingProxyType(
    {"cpu": CPU, "memory": MEMORY, "ephemeral-storage": MEMORY, "hugepages-2Mi": MEMORY}
)
"""Bounds by resource; other resources have the bounds `DEVICES`."""


def millicpu(quantity: str) -> int:
    """Return ``quantity`` of CPU in thousandths, rounded up as Kubernetes does."""
    return math.ceil(amount(quantity) * 1000)


def mib(quantity: str) -> int:
    """Return ``quantity`` of memory in MiB, rounded up."""
    return math.ceil(amount(quantity) / _MIB)


def count(quantity: str) -> int:
    """Return ``quantity`` as a whole number of things, such as devices, rounded down."""
    return int(amount(quantity))


def amount(quantity: str) -> Decimal:
    """Return ``quantity`` as an exact number.

    Raises:
        ValueError: It does not have the form of a quantity.
    """
    parts = _PARTS.fullmatch(quantity)
    if parts is None or len(quantity) > _LONGEST:
        raise ValueError(f"not a quantity: {quantity!r}")
    number, unit = Decimal(parts["number"]), parts["unit"] or ""
    if unit in _BINARY:
        return number * 2 ** _BINARY[unit]
    if unit in _DECIMAL:
        return number.scaleb(_DECIMAL[unit])
    return number.scaleb(int(unit[1:]))


def why_out_of_bounds(quantity: str, resource: str) -> tuple[str, str] | None:
    """Return why ``quantity`` is no plausible amount of ``resource``, and the remedy; else None.

    Args:
        quantity: A quantity.
        resource: Name of the resource.

    Raises:
        ValueError: ``quantity`` does not have the form of a quantity.
    """
    bounds, value = OF_RESOURCE.get(resource, DEVICES), amount(quantity)
    if bounds is DEVICES and value != value.to_integral_value():
        return "a part of a device", "write a whole number"
    if value > bounds.greatest:
        return "more than Kubernetes counts", "write less"
    if value >= bounds.least:
        return None
    if bounds is MEMORY and quantity.endswith("m"):
        meant = f"{quantity[:-1]}M"
        return "thousandths of a byte", f"did you mean {meant} or {meant}i?"
    unit = "" if bounds is CPU else " bytes" if quantity.isdecimal() else ""
    todo = "write a unit, such as 64Gi" if unit else f"write at least {bounds.written}"
    return f"too little{unit and ', as a number without a unit is bytes'}", todo


SIZES: Mapping[str, Callable[[str], int]] = MappingProxyType(
    {"cpu": millicpu, "memory": mib, "ephemeral-storage": mib, "hugepages-2Mi": mib}
)
"""Functions that convert a quantity to its resource's unit; other resources use `count`."""
