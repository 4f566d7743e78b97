"""Hosts in a text: in URLs, in references of images, by name alone, and by address."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Literal

from ultrascale.catalog.domains import top_level_domains

Form = Literal["URL", "image", "name", "address", "command", "index"]

UNKNOWN = "value--of--deploy"
"""Stands for a value that CloudFormation or a program puts into a text later."""

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_URL = re.compile(
    r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{1,20}://"
    r"(?:[^\s/@\"'<>|\\]{0,256}@)?"
    r"(?P<host>\[[0-9a-f:.]+\]|[^\s/:?#\"'<>|\\`(){}\[\],;&$!*=]+)",
    re.IGNORECASE,
)
_NAME = re.compile(
    rf"(?<![\w.%$~-])(?P<name>(?:{_LABEL}\.)+(?P<top>[a-z][a-z0-9-]*[a-z0-9]))\.?"
    r"(?![\w-]|\.[\w-]|\()(?P<port>:\d{2,5}(?!\d))?(?P<path>/)?",
    re.IGNORECASE,
)
# Behind a colon stands the tag of an image.
_ADDRESS = re.compile(r"(?<![\w.-])(?<!\w:)(?P<address>(?:\d{1,3}\.){3}\d{1,3})(?![\w-]|\.\w|/\d)")
# Every address of the internet begins so; a time and the name of a class do not.
# Source: https://www.iana.org/assignments/ipv6-unicast-address-assignments
_ADDRESS_6 = re.compile(r"(?<![\w:.])[23][0-9a-f]{3}(?::[0-9a-f]{0,4}){2,7}(?![\w:]|/\d)", re.I)
# What files end in, and domains as well: `install.sh` is a file, `karpenter.sh/v1` is not one.
_SUFFIXES = frozenset(
    (
        *("ac", "app", "bar", "bz", "cab", "cc", "cfd", "cl", "doc", "gz", "id", "in", "info"),
        *("java", "lock", "log", "map", "md", "ml", "mo", "mov", "name", "new", "one", "pl", "pm"),
        *("post", "properties", "ps", "pub", "py", "pyc", "rs", "run", "sc", "sh", "so", "st"),
        *("stream", "tf", "tk", "to", "ts", "vi", "webp", "work", "zip", "zone"),
    )
)
_INSIDE = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "224.0.0.0/3",
        "::/127",
        "fc00::/7",
        "fe80::/10",
        "ff00::/8",
    )
)


@dataclass(frozen=True, slots=True)
class Name:
    """A host in a text.

    Attributes:
        host: Its name or address, in lower case, without the port.
        form: Kind of place that it stands in.
    """

    host: str
    form: Form


def names_in(text: str) -> Iterator[Name]:
    """Yield the hosts of a text, in its order; one as often as it occurs.

    Addresses of private networks and of the host itself are none.
    """
    if "://" in text:
        for match in _URL.finditer(text):
            yield from _of_url(match["host"])
    if text.count(":") > 1:
        for match in _ADDRESS_6.finditer(text):
            yield from _of_address(match[0])
    if "." not in text:
        return
    for match in _NAME.finditer(text):
        if _is_host(match, text):
            yield Name(match["name"].lower(), "name")
    for match in _ADDRESS.finditer(text):
        yield from _of_address(match["address"])


def _of_url(host: str) -> Iterator[Name]:
    host = host.strip(".").lower()
    if host.startswith("["):
        yield from _of_address(host.strip("[]"))
    elif re.fullmatch(r"\d+|0x[0-9a-f]+|(?:\d+\.){3}\d+", host):
        # Programs read a whole number as an address as well.
        yield from _of_address(host if "." in host else str(_from_number(host)))
    elif "." in host and not host.endswith(UNKNOWN):
        yield Name(host, "URL")


def _from_number(text: str) -> IPv4Address:
    return IPv4Address(int(text, 0) % 2**32)


def _of_address(text: str) -> Iterator[Name]:
    try:
        address: IPv4Address | IPv6Address = ip_address(text)
    except ValueError:
        return
    if not any(address.version == inside.version and address in inside for inside in _INSIDE):
        yield Name(str(address), "address")


def _is_host(match: re.Match[str], text: str) -> bool:
    before = text[match.start() - 1 : match.start()]
    # A path within a file system or a URL, which the URL's own pattern has read.
    if before == "/":
        return False
    name = match["name"]
    top, labels = match["top"].lower(), name.split(".")
    if top not in top_level_domains() or UNKNOWN in labels[1:]:
        return False
    # An attribute of an object in a program, such as `event.Data`.
    if len(labels) == 2 and name not in (name.lower(), name.upper()):
        return False
    has_place = bool(match["port"] or match["path"] or before == "@")
    return has_place or len(labels) > 2 or top not in _SUFFIXES
