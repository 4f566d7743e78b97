"""Nothing that opens a door may stand in what is synthesized: it is read by far more people."""

import re
from collections.abc import Iterator, Mapping
from typing import cast

_PATTERNS = {
    "an access key of AWS": r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    "a private key": r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----",
    "a token of GitHub": r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,})\b",
    "a token of Hugging Face": r"\bhf_[A-Za-z0-9]{30,}\b",
    "a key of an API": r"\bsk-(?:ant-|proj-)?[A-Za-z0-9_-]{32,}\b",
    "a token of Slack": r"\bxox[abprs]-[A-Za-z0-9-]{10,}\b",
    "a signed token": r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    "a password in an address": r"\b[a-z][a-z0-9+.-]*://[^\s/:@${}<]+:[^\s/@${}<]{3,}@",
}
_FOUND = {what: re.compile(pattern) for what, pattern in _PATTERNS.items()}
# How names of secrets end, as AWS, Kubernetes and programs write them.
_NAMES = re.compile(
    r"(?:password|passwd|secret|secretstring|secret_?access_?key|private_?key|api_?key|auth_?token"
    r"|access_?token|token)$",
    re.IGNORECASE,
)


def text_findings(text: str) -> Iterator[str]:
    """Find what has the form of a credential."""
    for what, pattern in _FOUND.items():
        if pattern.search(text):
            yield what


def value_findings(value: object, place: str = "") -> Iterator[str]:
    """Find literal values under names of secrets, and whatever has the form of a credential."""
    if isinstance(value, Mapping):
        mapping = cast("Mapping[str, object]", value)
        yield from _pair(mapping, place)
        for key, item in mapping.items():
            if isinstance(item, str) and _is_secret(str(key), item):
                yield f"{place}.{key}: a literal value"
            yield from value_findings(item, f"{place}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[object]", value)):
            yield from value_findings(item, f"{place}[{index}]")
    elif isinstance(value, str):
        yield from (f"{place}: {what}" for what in text_findings(value))


def _pair(mapping: Mapping[str, object], place: str) -> Iterator[str]:
    """Find what the environment of a container or of a build has under the name of a secret."""
    name = mapping.get("name", mapping.get("Name"))
    value = mapping.get("value", mapping.get("Value"))
    plain = mapping.get("Type", "PLAINTEXT") == "PLAINTEXT"
    if isinstance(name, str) and isinstance(value, str) and plain and _is_secret(name, value):
        yield f"{place}.{name}: a literal value"


def _is_secret(name: str, value: str) -> bool:
    """Return whether a text under a name is a secret: a reference to one, or its name, is none."""
    refers = value.startswith(("{{resolve:", "${", "arn:", "/")) or value.endswith("-secret")
    return bool(_NAMES.search(name)) and bool(value) and not refers
