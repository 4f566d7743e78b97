"""References of container images, in the grammar of container runtimes and the kubelet.

Source: https://github.com/distribution/reference/blob/v0.6.0/reference.go
"""

import re

from ultrascale.frozen import Frozen

_DOMAIN_PART = "(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_PATH_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
# Compiled at the first use: many cluster files name no image.
_HOST = rf"{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*(?::(?P<port>[0-9]{{1,5}}))?"
_TAG = "[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127}"
# Algorithms that the runtimes know, with the length of each digest.
# Source: https://github.com/opencontainers/image-spec/blob/v1.1.1/descriptor.md#registered-algorithms
_DIGEST = "sha256:[a-f0-9]{64}|sha512:[a-f0-9]{128}"
_IN_REGISTRY = (
    rf"(?P<repository>{_PATH_PART}(?:/{_PATH_PART})*)"
    rf"(?::(?P<tag>{_TAG}))?(?:@(?P<digest>{_DIGEST}))?"
)
PATTERN = (
    rf"^(?:{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*(?::[0-9]{{1,5}})?/)?{_PATH_PART}(?:/{_PATH_PART})*"
    rf"(?::{_TAG})?(?:@(?:{_DIGEST}))?$"
)
"""Pattern that matches every reference, for JSON Schemas."""
_LONGEST_NAME = 255
_HIGHEST_PORT = 65_535


class ImageReference(Frozen):
    """Parts of an image reference."""

    host: str | None  # Registry, with its port; None where the reference begins with a repository
    repository: str  # Repository within the registry
    tag: str | None  # Tag; None without one
    digest: str | None  # Digest; None without one


def parse(text: str) -> ImageReference | None:
    """Return the parts of ``text``; None if it is no image reference.

    The first part is a registry if it has a dot or a colon; `localhost` is no registry.
    """
    host, slash, rest = text.partition("/")
    if not (slash and ("." in host or ":" in host)):
        host, rest = "", text
    registry, found = re.fullmatch(_HOST, host), re.fullmatch(_IN_REGISTRY, rest)
    if found is None or len(host) + len(found["repository"]) >= _LONGEST_NAME:
        return None
    if host and (registry is None or int(registry["port"] or 0) > _HIGHEST_PORT):
        return None
    return ImageReference(
        host=host or None,
        repository=found["repository"],
        tag=found["tag"],
        digest=found["digest"],
    )
