"""Base images of Dockerfiles, and Dockerfiles that take copies of them."""

import re
from collections.abc import Iterator, Mapping

from ultrascale.catalog import registries
from ultrascale.plan.model import CopiesPlan

_FROM = re.compile(
    r"^(?P<start>[ \t]*FROM[ \t]+(?:--\S+[ \t]+)*)(?P<image>\S+)(?:[ \t]+AS[ \t]+(?P<stage>\S+))?",
    re.IGNORECASE | re.MULTILINE,
)
_COPIED = re.compile(
    r"(?P<start>^[ \t]*COPY[ \t][^\n]*?--from=|--mount=[^\s]*?from=)(?P<image>[^\s,]+)",
    re.IGNORECASE | re.MULTILINE,
)
_ARGUMENT = re.compile(
    r"^(?P<start>[ \t]*ARG[ \t]+(?P<name>\w+)=[\"']?)(?P<image>[^\s\"']*)",
    re.IGNORECASE | re.MULTILINE,
)
_SYNTAX = re.compile(
    r"^(?P<start>#[ \t]*syntax[ \t]*=[ \t]*)(?P<image>\S+)", re.IGNORECASE | re.MULTILINE
)
# Source: https://docs.docker.com/reference/dockerfile/#environment-replacement
_VARIABLE = re.compile(r"\$(?:\{(?P<braced>\w+)(?::-(?P<default>[^}]*))?\}|(?P<bare>\w+))")


def base_images(dockerfile: str) -> tuple[str, ...]:
    """Return the images that a Dockerfile takes from registries, each once, in its order.

    Variables have the defaults of the arguments before the first stage: builds pass no others.

    Source: https://docs.docker.com/reference/dockerfile/
    """
    return tuple(dict.fromkeys(image for _, image in _references(dockerfile)))


def with_copied_bases(dockerfile: str, copies: CopiesPlan) -> str:
    """Return a Dockerfile that takes all of its images from ``copies``.

    Args:
        dockerfile: Content of the file.
        copies: Registry of the copies.
    """
    for (start, end), image in sorted({*_references(dockerfile)}, reverse=True):
        dockerfile = dockerfile[:start] + copies.reference(image) + dockerfile[end:]
    return dockerfile


def _references(dockerfile: str) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield the places where a Dockerfile names an image of a registry: no stage, no ``scratch``.

    Yields:
        First and last place of the name's text, and the whole reference. Where an argument is the
        whole reference, it counts, and not the stage that refers to it.
    """
    froms = [*_FROM.finditer(dockerfile)]
    before = froms[0].start() if froms else 0
    arguments = {match["name"]: match for match in _ARGUMENT.finditer(dockerfile, 0, before)}
    defaults = {name: match["image"] for name, match in arguments.items()}
    stages = {match["stage"].lower() for match in froms if match["stage"]} | {"scratch"}
    for pattern in (_SYNTAX, _FROM, _COPIED):
        for match in pattern.finditer(dockerfile):
            place, image = match.span("image"), match["image"]
            if pattern is _FROM and (variable := _VARIABLE.search(image)) is not None:
                name = variable["braced"] or variable["bare"]
                if variable[0] == image and defaults.get(name):
                    place = arguments[name].span("image")
                image = _expanded(image, defaults)
            if image.lower() in stages or image.isdecimal():
                continue
            # A variable without a default, such as the platform's, is in the name of a stage.
            if "$" not in image and registries.parse_reference(image) is not None:
                yield place, image


def _expanded(text: str, defaults: Mapping[str, str]) -> str:
    """Return ``text`` with the values of its variables; variables without a value stay."""

    def value(match: re.Match[str]) -> str:
        default = defaults.get(match["braced"] or match["bare"])
        return default or match["default"] or match[0]

    return _VARIABLE.sub(value, text)
