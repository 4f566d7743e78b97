"""Cluster files as YAML: both readers see the same."""

import itertools
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import soak
from tests.support.folders import DATA, ROOT
from ultrascale import yaml_reader
from ultrascale.config import _document
from ultrascale.errors import ConfigError

FILES = [*(ROOT / "clusters").glob("*.yaml"), *(DATA / "known_bad").glob("*.yaml")]
MARKS = ":-{}[]&*!|>'\"%@`?,# \n~=<\t\x85\u2028é🙂\r\\"


def changed(text: str, seed: random.Random) -> str:
    """Return a part of ``text`` with some characters put in or replaced."""
    start = seed.randrange(max(1, len(text) - 300))
    part = [*text[start : start + 300].partition("\n")[2]]
    for _ in range(seed.randint(0, 4)):
        place = seed.randrange(len(part) + 1)
        part[place : place + seed.randint(0, 1)] = seed.choice(MARKS)
    return "".join(part)


def texts() -> Iterator[str]:
    seed = random.Random(3)
    for file in FILES:
        text = file.read_text()
        yield text
        yield from (changed(text, seed) for _ in range(160 if soak.LONG else 20))


def read(text: str) -> object:
    """Return the value, and where each of its keys stands, or the lines of the refusal."""
    try:
        document = _document.parse_yaml(text, source="file")
    except ConfigError as error:
        return error.mistakes
    return document.value, places(document.root)


def places(root: yaml.Node) -> list[tuple[int, int]]:
    """Return line and column of a node and of all below it."""
    nodes: list[Any] = [root]
    for node in nodes:
        if isinstance(node, yaml.MappingNode):
            nodes.extend(itertools.chain.from_iterable(node.value))
        elif isinstance(node, yaml.SequenceNode):
            nodes.extend(node.value)
    return [(node.start_mark.line, node.start_mark.column) for node in nodes]


def test_libyaml_reads_what_pyyaml_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [*texts()]
    by_libyaml = [read(text) for text in cases]
    monkeypatch.setattr(yaml_reader, "_READ_DIFFERENTLY", re.compile(""))

    assert len(cases) > 500
    assert by_libyaml == [read(text) for text in cases]


@pytest.mark.parametrize(
    "text", ["a: [what?]", "a:\tb", "a: >#-\n  b", "a: b\x85c: d", "a: {b: ,c: d}"]
)
def test_what_they_read_differently_pyyaml_reads(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = read(text)
    monkeypatch.setattr(yaml_reader, "_READ_DIFFERENTLY", re.compile(""))

    assert first == read(text)


def test_a_file_nested_too_deeply_is_refused_whatever_its_length(tmp_path: Path) -> None:
    for text in ("- " * 16_000, "- " * 40_000):
        file = tmp_path / "cluster.yaml"
        file.write_text(text)

        with pytest.raises(ConfigError, match="nested too deeply"):
            _document.read(file)
