"""Images that Dockerfiles build on, and Dockerfiles that take them from a mirror."""

import re
from collections.abc import Iterator

from ultrascale.catalog import image_references
from ultrascale.plan.model import MirrorPlan

_FROM = re.compile(
    r"^(?P<start>[ \t]*FROM[ \t]+(?:--\S+[ \t]+)*)(?P<image>\S+)(?:[ \t]+AS[ \t]+(?P<stage>\S+))?",
    re.IGNORECASE | re.MULTILINE,
)
_COPIED = re.compile(
    r"(?P<start>^[ \t]*COPY[ \t][^\n]*?--from=|--mount=[^\s]*?from=)(?P<image>[^\s,]+)",
    re.IGNORECASE | re.MULTILINE,
)
_ARGUMENT = re.compile(
    r"^(?P<start>[ \t]*ARG[ \t]+(?P<name>\w+)=[\"']?)(?P<image>[^\s\"']+)",
    re.IGNORECASE | re.MULTILINE,
)
_SYNTAX = re.compile(
    r"^(?P<start>#[ \t]*syntax[ \t]*=[ \t]*)(?P<image>\S+)", re.IGNORECASE | re.MULTILINE
)


def base_images(dockerfile: str) -> tuple[str, ...]:
    """Return the images that a Dockerfile takes from registries, each once, in its order.

    Source: https://docs.docker.com/reference/dockerfile/
    """
    return tuple(dict.fromkeys(match["image"] for match in _references(dockerfile)))


def mirrored(dockerfile: str, mirror: MirrorPlan) -> str:
    """Return a Dockerfile that takes all of its images from ``mirror``.

    Args:
        dockerfile: Content of the file.
        mirror: Where copies of the images are.
    """
    for match in sorted(_references(dockerfile), key=lambda found: found.start(), reverse=True):
        start, end = match.span("image")
        dockerfile = dockerfile[:start] + mirror.reference(match["image"]) + dockerfile[end:]
    return dockerfile


def _references(dockerfile: str) -> Iterator[re.Match[str]]:
    """Yield where a Dockerfile names an image of a registry: no stage, variable or ``scratch``."""
    froms = [*_FROM.finditer(dockerfile)]
    stages = {match["stage"].lower() for match in froms if match["stage"]} | {"scratch"}
    words = " ".join(match["image"] for match in froms)
    for pattern in (_SYNTAX, _ARGUMENT, _FROM, _COPIED):
        for match in pattern.finditer(dockerfile):
            image = match["image"]
            if pattern is _ARGUMENT and not re.search(rf"\$\{{?{match['name']}\b", words):
                continue
            if image.lower() in stages or image.isdecimal() or "$" in image:
                continue
            if image_references.parse(image) is not None:
                yield match
