"""Kinds of value that parts of the cluster file share."""

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from ipaddress import IPv4Network
from typing import Annotated, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    WithJsonSchema,
)
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from pydantic_core.core_schema import no_info_after_validator_function

from ultrascale.catalog import quantities
from ultrascale.frozen import Frozen

Item = TypeVar("Item", bound=Hashable)


class WrongValueError(ValueError):
    """A value that the cluster file may not hold."""

    def __init__(
        self,
        wrong: str,
        todo: str = "",
        *,
        complete: bool = False,
        within: Sequence[int] = (),
    ) -> None:
        super().__init__(wrong)
        self.wrong = wrong  # What is wrong with it
        self.todo = todo  # What to do about it; empty where ``wrong`` says so already
        self.complete = complete  # Whether ``wrong`` names the value already
        # Items of the value that are wrong, by their numbers; empty: the value is
        self.within = within


def one_of(values: Iterable[str | int]) -> FieldInfo:
    """Return the entry of the JSON schema for a value that a rule holds to ``values``."""
    return FieldInfo(json_schema_extra={"enum": [*values]})


class _Matching(Frozen, kw_only=False):
    """The check of text against a pattern, which the JSON schema names as well."""

    pattern: str
    wrong: str
    todo: str
    flags: re.RegexFlag

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        def check(value: str) -> str:
            # Compiled for the first value: most files have few of the keys of a type.
            if re.fullmatch(self.pattern, value, self.flags) is None:
                raise WrongValueError(self.wrong, self.todo)
            return value

        return no_info_after_validator_function(check, handler(source))

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        pattern = portable(self.pattern, any_script=self.flags == re.UNICODE)
        return {**handler(core_schema), "pattern": f"^(?:{pattern})$"}


# Characters of ASCII outside words.
_NO_WORD = "".join(chr(code) for code in range(128) if not (chr(code).isalnum() or code == 95))
_CLASS = re.compile(r"\[(?:\\.|[^\]\\])*\]|\\.")


def portable(pattern: str, *, any_script: bool = False) -> str:
    r"""Return ``pattern`` as Python, JavaScript and others read it alike.

    Python, JavaScript and others disagree on the scripts of ``\w`` and ``\d``, so both are
    replaced. With ``any_script``, a class with ``\w`` becomes all characters but the ASCII ones
    outside it.
    """

    def spelled(match: re.Match[str]) -> str:
        part = match[0]
        if any_script and part.startswith("[") and r"\w" in part:
            own = re.compile(part, re.ASCII)
            return "[^" + "".join(f"\\x{ord(c):02x}" for c in _NO_WORD if not own.match(c)) + "]"
        inner = part.replace(r"\w", "A-Za-z0-9_").replace(r"\d", "0-9")
        return inner if inner == part or part.startswith("[") else f"[{inner}]"

    return _CLASS.sub(spelled, pattern)


class InSchema(Frozen, kw_only=False):
    """Keywords of the JSON schema for the check of a validator or a rule."""

    keywords: Callable[[], Mapping[str, object]]

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {**handler(core_schema), **self.keywords()}


def in_schema(**keywords: object) -> InSchema:
    """Return keywords of the JSON schema beside those of the value's type."""
    return InSchema(lambda: keywords)


def between(bounds: tuple[float, float]) -> InSchema:
    lowest, most = bounds
    return InSchema(lambda: {"minimum": lowest, "maximum": most})


def known_in_schema(names: Callable[[], Iterable[str]]) -> InSchema:
    """Return the names that the JSON schema offers, looked up when it is made."""
    return InSchema(lambda: {"enum": sorted(names())})


def matching(pattern: str, wrong: str, todo: str, *, any_script: bool = False) -> _Matching:
    """Return a check that refuses every text that ``pattern`` does not match as a whole.

    Args:
        pattern: A regular expression.
        wrong: What is wrong with other texts.
        todo: What to do about it.
        any_script: Whether its classes have the letters and digits of every script, not only
            ASCII's.
    """
    return _Matching(pattern, wrong, todo, re.UNICODE if any_script else re.ASCII)


def _distinct(values: tuple[Item, ...]) -> tuple[Item, ...]:
    seen: set[Item] = set()
    twice = [number for number, value in enumerate(values) if value in seen or seen.add(value)]
    if twice:
        raise WrongValueError("listed twice", "keep one", within=twice)
    return values


Distinct = Annotated[
    tuple[Item, ...], AfterValidator(_distinct), Field(json_schema_extra={"uniqueItems": True})
]
"""A list without the same value twice."""
Audience = Annotated[
    str, matching(r"[!-~]{1,255}", "not an audience", "write printable ASCII without spaces")
]
"""Value of `aud` in tokens."""
AtLeastOne = Annotated[
    tuple[Item, ...],
    Field(min_length=1),
    AfterValidator(_distinct),
    Field(json_schema_extra={"uniqueItems": True}),
]
"""A list of at least one value, without the same value twice."""


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


def _day(value: object) -> object:
    todo = "write it as 2027-01-31"
    if isinstance(value, str):
        try:
            value = datetime.strptime(value, "%Y-%m-%d").date()
        except ValueError:
            raise WrongValueError("not a day", todo) from None
    if not isinstance(value, date) or isinstance(value, datetime):
        raise WrongValueError("not a day", todo)
    return value


def _quantity(value: object) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    todo = "write a number and a unit, such as 64Gi"
    if not isinstance(value, str):
        raise WrongValueError("not a Kubernetes quantity", todo)
    try:
        quantities.amount(value)
    except ValueError:
        raise WrongValueError("not a Kubernetes quantity", todo) from None
    return value


def _amount_of(resource: str) -> AfterValidator:
    """Return the check that a quantity is an amount of ``resource``."""

    def check(value: str) -> str:
        why = quantities.why_out_of_bounds(value, resource)
        if why is not None:
            raise WrongValueError(*why)
        return value

    return AfterValidator(check)


_LABEL_RULE = "use lower-case letters, digits and '-', from a letter to a letter or digit"


def dns_label(longest: int) -> _Matching:
    wrong = f"not a DNS label of at most {longest} characters"
    return matching(rf"[a-z](?:[-a-z0-9]{{0,{longest - 2}}}[a-z0-9])?", wrong, _LABEL_RULE)


DnsLabel = Annotated[str, dns_label(63)]
_BYTE = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_ADDRESS_RANGE = rf"^{_BYTE}(?:\.{_BYTE}){{3}}(?:/(?:3[0-2]|[12]?[0-9]))?$"
# Every spelling of ISO 8601 that Python reads.
_TIME = (
    "^(?:[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{8}|[0-9]{4}-?W[0-9]{2}(?:-?[0-9])?)"
    "[^0-9][0-9]{2}[0-9:.,]*(?:Z|[+-][0-9]{2}[0-9:.]*)$"
)
_DAY = "^[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])$"
_NUMBER_WITH_UNIT = (
    r"^(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,3})?$"
)

Network4 = Annotated[
    IPv4Network,
    BeforeValidator(_network),
    WithJsonSchema({"type": "string", "pattern": _ADDRESS_RANGE, "title": "IPv4 range"}),
]
Instant = Annotated[
    datetime,
    BeforeValidator(_instant),
    WithJsonSchema({"type": "string", "pattern": _TIME, "title": "time"}),
]
Day = Annotated[
    date,
    BeforeValidator(_day),
    WithJsonSchema({"type": "string", "pattern": _DAY, "title": "day"}),
]
Quantity = Annotated[
    str,
    BeforeValidator(_quantity, json_schema_input_type=str | int | float),
    WithJsonSchema(
        {
            "title": "quantity",
            "anyOf": [
                {"type": "string", "pattern": _NUMBER_WITH_UNIT, "maxLength": 40},
                {"type": "number", "minimum": 0},
            ],
        }
    ),
]
CpuQuantity = Annotated[Quantity, _amount_of("cpu")]
MemoryQuantity = Annotated[Quantity, _amount_of("memory")]
SubdomainName = Annotated[
    str,
    matching(
        r"(?=.{1,253}$)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*",
        "not a DNS name",
        "use lower-case letters, digits, '-' and '.'",
    ),
]
LabelValue = Annotated[
    str,
    matching(
        r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?",
        "not a Kubernetes label value",
        "use at most 63 letters, digits, '-', '_' and '.'",
    ),
]
LabelKey = Annotated[
    str,
    matching(
        r"(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?",
        "not a Kubernetes label key",
        "write name or domain/name",
    ),
]

# EC2 tags.
# Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html#tag-restrictions
_CHARACTERS = "letters, digits, spaces and . : / = + - @ _"

TagKey = Annotated[
    str,
    matching(
        r"[\w .:/=+@-]{1,128}",
        "not the key of an EC2 tag",
        f"write up to 128 {_CHARACTERS}",
        any_script=True,
    ),
]
TagValue = Annotated[
    str,
    matching(
        r"[\w .:/=+@-]{0,256}",
        "not the value of an EC2 tag",
        f"write up to 256 {_CHARACTERS}",
        any_script=True,
    ),
]
# A node class takes an asterisk for any value, which may match another owner's reservation.
_SelectedValue = Annotated[
    str,
    matching(
        r"[\w .:/=+@-]{1,256}",
        "not a tag value that selects one reservation",
        f"write the tag's value: 1 to 256 {_CHARACTERS}",
        any_script=True,
    ),
]
SelectorTags = Annotated[Mapping[TagKey, _SelectedValue], Field(min_length=1)]


Email = Annotated[
    str,
    # The form of HTML's `input type=email`, with two parts of a domain, and SMTP's lengths.
    # Sources: https://html.spec.whatwg.org/#valid-e-mail-address,
    # https://www.rfc-editor.org/rfc/rfc5321#section-4.5.3.1
    matching(
        r"(?=.{1,254}$)[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}"
        r"@[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
        r"(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)+",
        "not an e-mail address",
        "write it as name@example.com",
    ),
]
"""An e-mail address."""
