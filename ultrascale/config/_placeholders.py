"""Placeholders: values of documentation that stand for a user's own.

They pass every rule of form, and a cluster with them belongs to nobody, or to somebody else.

Sources:
    https://www.rfc-editor.org/rfc/rfc3849 (IPv6)
    https://www.rfc-editor.org/rfc/rfc2606 (domains)
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html (EXAMPLE in ids)
"""

import re
from collections.abc import Iterator
from ipaddress import IPv4Address

from ultrascale.catalog import vpc
from ultrascale.config._document import KeyPath, is_list, is_mapping
from ultrascale.config._errors import Mistake
from ultrascale.config._reading import Reading

_IPV4 = re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])")
_IPV6 = re.compile(r"\b2001:0?db8:", re.IGNORECASE)
_DOMAIN = re.compile(r"\bexample\.(?:com|net|org|edu)\b", re.IGNORECASE)
_ACCOUNT = re.compile(r"(?<![\w-])\d{12}(?![\w-])")
# One digit twelve times, three digits four times each as in 1111-2222-3333, or digits in order.
_MADE_UP_ACCOUNT = re.compile(r"(\d)\1{11}|(\d)\2{3}(\d)\3{3}(\d)\4{3}")
_IN_ORDER = ("123456789012", "012345678901", "210987654321", "098765432109")
_ID = re.compile(r"\b[a-z]{1,12}-([0-9a-f]{17}|[0-9a-f]{8})\b")
# Of real ids, which are random, fewer than one in ten million looks like this.
_MADE_UP_ID = re.compile(r"([0-9a-f])\1{7}|12345678|abcdef12345|1a2b3c4d|a1b2c3d4")
_MARKED = re.compile(r"\b[\w-]*EXAMPLE\b|\bamzn-s3-demo-\w+")


def placeholders(reading: Reading) -> tuple[Mistake, ...]:
    """Return each value of a cluster file that stands in for the user's own.

    `check` and synthesis accept them, so that examples can be checked and synthesized; a command
    that reads or changes an account refuses them.
    """
    return tuple(_within(reading.document.value, ()))


def _within(value: object, at: KeyPath) -> Iterator[Mistake]:
    if is_mapping(value):
        for key, inner in value.items():
            yield from _within(inner, (*at, key))
    elif is_list(value):
        for number, inner in enumerate(value):
            yield from _within(inner, (*at, number))
    elif isinstance(value, str):
        for wrong, todo in dict.fromkeys(_placeholders_in(value)):
            yield Mistake(at, wrong, todo)


def _placeholders_in(text: str) -> Iterator[tuple[str, str]]:
    for account in _ACCOUNT.findall(text):
        if account in _IN_ORDER or _MADE_UP_ACCOUNT.fullmatch(account):
            yield f"{account} is an account of documentation", "write your own"
    for address in _IPV4.findall(text):
        if _is_documentation(address):
            yield f"{address} is an address of documentation", "write your own range"
    if _IPV6.search(text):
        yield "an address of documentation", "write your own range"
    if domain := _DOMAIN.search(text):
        yield f"{domain[0]} is a domain of documentation", "write your own"
    for made_up in _ID.finditer(text):
        if _MADE_UP_ID.search(made_up[1]):
            yield f"{made_up[0]} is a made-up id", "write the one that AWS gave you"
    for marked in _MARKED.findall(text):
        yield f"{marked} is a name of documentation", "write your own"


def _is_documentation(text: str) -> bool:
    if any(int(part) > 255 for part in text.split(".")):
        return False
    address = IPv4Address(text)
    return any(address in network for network in vpc.DOCUMENTATION)
