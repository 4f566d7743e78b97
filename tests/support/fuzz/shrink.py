"""Smaller files with the same finding."""

import copy
import time
from collections.abc import Callable, Iterator
from typing import Any

import yaml

from tests.support.fuzz.cases import Case
from tests.support.fuzz.keys import Place, at, file_schema, places
from tests.support.fuzz.structural import written

Has = Callable[[Case], bool]
"""Returns whether a case has the finding still."""


def shrunk(case: Case, has: Has, *, seconds: float) -> Case:
    """Return the smallest case found in ``seconds`` that has the same finding."""
    until = time.monotonic() + seconds
    case = _by_parts(case, has, until)
    return _by_lines(case, has, until)


def _by_parts(case: Case, has: Has, until: float) -> Case:
    """Remove keys and items, the largest first, while the finding stays."""
    try:
        document: Any = yaml.load(case.data, yaml.CSafeLoader)
    except Exception:
        return case
    if not isinstance(document, dict) or not has(Case(_bytes(document), case.cluster)):
        return case
    again = True
    while again and time.monotonic() < until:
        again = False
        for other in _smaller(document):
            if time.monotonic() > until:
                break
            if has(Case(_bytes(other), case.cluster)):
                document, again = other, True
                break
    return Case(_bytes(document), case.cluster)


def _smaller(document: Any) -> Iterator[Any]:
    found: list[Place] = [place for place, _, _ in places(file_schema(), document)]
    for place in sorted(found, key=len):
        other = copy.deepcopy(document)
        del at(other, place[:-1])[place[-1]]
        yield other


def _by_lines(case: Case, has: Has, until: float) -> Case:
    lines = case.data.splitlines(keepends=True)
    size = max(1, len(lines) // 2)
    while size and time.monotonic() < until:
        start = 0
        while start < len(lines) and time.monotonic() < until:
            rest = [*lines[:start], *lines[start + size :]]
            if rest and has(Case(b"".join(rest), case.cluster)):
                lines = rest
            else:
                start += size
        size //= 2
    return Case(b"".join(lines), case.cluster)


def _bytes(document: Any) -> bytes:
    return written(document).encode("utf-8", "replace")
