"""The base of every part of the cluster file, and the kinds of value that parts share."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from ipaddress import IPv4Network
from typing import Annotated, ClassVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict


class WrongValueError(ValueError):
    """A value that the cluster file may not hold.

    Attributes:
        wrong: What is wrong with it.
        todo: What to do about it; empty where ``wrong`` says so already.
        complete: Whether ``wrong`` names the value already.
    """

    def __init__(self, wrong: str, todo: str = "", *, complete: bool = False) -> None:
        super().__init__(wrong)
        self.wrong = wrong
        self.todo = todo
        self.complete = complete


class Model(BaseModel):
    """Base of the parts of a cluster file: immutable, closed to unknown keys, no conversions.

    A model holds the form of its part. What its values must be to each other stands in `rules`,
    so that one wrong value hides no other mistake.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, validate_by_name=True, validate_by_alias=True
    )

    derived: ClassVar[frozenset[str]] = frozenset()
    """Fields whose default follows from other keys; `derive` fills them."""

    @classmethod
    def derive(cls, fields: dict[str, object], known: Mapping[str, object]) -> None:
        """Fill the derived fields that the file leaves out.

        Args:
            fields: Values read so far, by field; what follows from them is added.
            known: Values of the sections before this one, as ``section_field``.
        """


def matching(pattern: str, wrong: str, todo: str) -> Callable[[str], str]:
    """Return a check that refuses every text that ``pattern`` does not match as a whole."""
    compiled = re.compile(pattern)

    def check(value: str) -> str:
        if compiled.fullmatch(value) is None:
            raise WrongValueError(wrong, todo)
        return value

    return check


def _network(value: object) -> object:
    if isinstance(value, IPv4Network):
        return value
    if not isinstance(value, str):
        raise WrongValueError(
            "not an IPv4 range", "write an address and a mask, such as 10.0.0.0/16"
        )
    try:
        return IPv4Network(value)
    except ValueError:
        pass
    try:
        meant = IPv4Network(value, strict=False)
    except ValueError:
        todo = "write an address and a mask, such as 10.0.0.0/16"
        raise WrongValueError("not an IPv4 range", todo) from None
    raise WrongValueError(
        "the address is inside its range, not its start", f"did you mean {meant}?"
    )


def _instant(value: object) -> object:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise WrongValueError(
                "not an ISO 8601 time", "write it as 2026-12-01T11:30:00Z"
            ) from None
    if not isinstance(value, datetime):
        raise WrongValueError("not a time", "write date, time and zone, as 2026-12-01T11:30:00Z")
    if value.tzinfo is None:
        raise WrongValueError("a time without its zone", "add Z for UTC, as 2026-12-01T11:30:00Z")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise WrongValueError("a time out of range", "write it as 2026-12-01T11:30:00Z") from None


def _quantity(value: object) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or _QUANTITY.fullmatch(value) is None:
        raise WrongValueError(
            "not a Kubernetes quantity", "write a number and a unit, such as 64Gi"
        )
    return value


# Source: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
_QUANTITY = re.compile(r"(\d+(\.\d*)?|\.\d+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d+)?")

_LABEL_RULE = "use lower-case letters, digits and '-', from a letter to a letter or digit"


def dns_label(longest: int) -> AfterValidator:
    """Return the check of a name of at most ``longest`` characters that starts with a letter."""
    wrong = f"not a DNS label of at most {longest} characters"
    return AfterValidator(
        matching(rf"[a-z](?:[-a-z0-9]{{0,{longest - 2}}}[a-z0-9])?", wrong, _LABEL_RULE)
    )


DnsLabel = Annotated[str, dns_label(63)]
Network4 = Annotated[IPv4Network, BeforeValidator(_network)]
Instant = Annotated[datetime, BeforeValidator(_instant)]
Quantity = Annotated[str, BeforeValidator(_quantity)]
SubdomainName = Annotated[
    str,
    AfterValidator(
        matching(
            r"(?=.{1,253}$)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*",
            "not a DNS name",
            "use lower-case letters, digits, '-' and '.'",
        )
    ),
]
LabelValue = Annotated[
    str,
    AfterValidator(
        matching(
            r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?",
            "not a Kubernetes label value",
            "use at most 63 letters, digits, '-', '_' and '.'",
        )
    ),
]
LabelKey = Annotated[
    str,
    AfterValidator(
        matching(
            r"(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?",
            "not a Kubernetes label key",
            "write name or domain/name",
        )
    ),
]
