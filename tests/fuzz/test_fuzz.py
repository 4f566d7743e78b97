"""Random files, and those that were wrong before: refused in clear words, or built whole.

`make fuzz FUZZ_SECONDS=600` tries many more; with SOAK in the environment this file tries four
times as many.
"""

from collections import Counter
from typing import cast

import pytest

from tests.support.fuzz.cases import Kind, kept, make
from tests.support.fuzz.oracle import Finding
from tests.support.soak import LONG

# By kind: how many, and how many of them are synthesized, which takes a second.
CASES = {
    "structural": (30, 1),
    "text": (20, 0),
    "semantic": (3, 1),
    "job": (6, 0),
    "job-text": (10, 0),
}
TIMES = 4 if LONG else 1


def told(findings: list[Finding]) -> str:
    return "\n".join(f"{finding.sign}\n{finding.detail}" for finding in findings)


@pytest.mark.parametrize("kind", CASES)
def test_a_random_file_is_refused_in_clear_words_or_built_whole(kind: str) -> None:
    number, synthesized = CASES[kind]
    counts: Counter[bool] = Counter()
    for seed in range(TIMES * number):
        case = make(cast("Kind", kind), str(seed))
        judgement = case.judged(synthesis=counts[True] < TIMES * synthesized)
        counts[judgement.accepted] += 1

        assert not judgement.findings, f"{kind} {seed}: {told([*judgement.findings])}"

    assert counts[not kind.endswith("text")]


@pytest.mark.parametrize("name", dict(kept()))
def test_what_was_wrong_before_is_not_again(name: str) -> None:
    assert not (found := dict(kept())[name].judged().findings), told([*found])
