"""Text that AWS or Kubernetes would read as an expression."""

import re
from collections.abc import Iterator, Mapping

from ultrascale.config._document import Document, KeyPath, is_list, is_mapping
from ultrascale.config._errors import Mistake, Mistakes
from ultrascale.config._rules import rule

_READERS = (
    # Source: https://docs.aws.amazon.com/cdk/v2/guide/tokens.html
    (
        re.compile(r"[$#]\{Token\["),
        "a token of the CDK, which synthesis would resolve",
        "write it without ${Token[",
    ),
    # CloudFormation resolves them wherever they stand, in manifests within templates too.
    # Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/dynamic-references.html
    (
        re.compile(r"\{\{resolve:"),
        "a dynamic reference, which CloudFormation would resolve",
        "name a Kubernetes Secret, or leave it out",
    ),
    (re.compile("\0"), "a NUL character, at which texts of Linux end", "leave it out"),
)


@rule
def text_stands_for_itself(document: Document) -> Mistakes:
    """Yield keys and values of ``document`` that would be read as expressions."""
    yield from text_mistakes(document.value)


def text_mistakes(value: Mapping[str, object]) -> Mistakes:
    """Yield keys and values within ``value`` that would be read as expressions."""
    yield from _within(value, ())


def _within(value: object, at: KeyPath) -> Iterator[Mistake]:
    if is_mapping(value):
        for key, inner in value.items():
            yield from _mistakes_in(str(key), (*at, str(key)), got=repr(str(key)))
            yield from _within(inner, (*at, str(key)))
    elif is_list(value):
        for number, inner in enumerate(value):
            yield from _within(inner, (*at, number))
    elif isinstance(value, str):
        yield from _mistakes_in(value, at)


def _mistakes_in(text: str, at: KeyPath, got: str | None = None) -> Iterator[Mistake]:
    for pattern, wrong, todo in _READERS:
        if pattern.search(text) is not None:
            yield Mistake(at, wrong, todo, got)
