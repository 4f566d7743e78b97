"""Kubernetes quantities as whole numbers.

Source: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
"""

import math
import re
from decimal import Decimal

_PARTS = re.compile(r"(?P<number>[\d.]+)(?P<unit>[KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_MIB = 2**20


def millicpu(quantity: str) -> int:
    """Return ``quantity`` of CPU in thousandths, rounded up as Kubernetes does."""
    return math.ceil(amount(quantity) * 1000)


def mib(quantity: str) -> int:
    """Return ``quantity`` of memory in MiB, rounded up."""
    return math.ceil(amount(quantity) / _MIB)


def count(quantity: str) -> int:
    """Return ``quantity`` of whole things, such as devices, rounded down."""
    return int(amount(quantity))


def amount(quantity: str) -> Decimal:
    """Return ``quantity`` as it is.

    Raises:
        ValueError: It has no such form.
    """
    parts = _PARTS.fullmatch(quantity)
    if parts is None:
        raise ValueError(f"not a quantity: {quantity!r}")
    number, unit = Decimal(parts["number"]), parts["unit"] or ""
    if unit in _BINARY:
        return number * 2 ** _BINARY[unit]
    if unit in _DECIMAL:
        return number.scaleb(_DECIMAL[unit])
    return number.scaleb(int(unit[1:]))
