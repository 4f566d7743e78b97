"""JSON of users, of assemblies and of AWS has one reader."""

import re
from pathlib import Path

import pytest

from tests.support.folders import ROOT
from ultrascale.documents import parse_json, read_json

# Programs that run in AWS Lambda, on nodes or in pods, without the package.
ELSEWHERE = ("lambdas/", "parts/fabric/", "parts/dev/idle_loop.py")


@pytest.mark.parametrize("wrong", ["NaN", "[1, -Infinity]", '{"a": 1e999}', "[" * 300, "[" * 9999])
def test_what_no_comparison_can_judge_is_refused(tmp_path: Path, wrong: str) -> None:
    file = tmp_path / "a.json"
    file.write_text(wrong + "]" * wrong.count("[") if wrong.startswith("[[") else wrong)

    with pytest.raises(ValueError, match=r"number|nested"):
        read_json(file)


def test_json_is_read_as_it_stands() -> None:
    assert parse_json(b'{"a": [1, 2.5, null, "NaN"]}') == {"a": [1, 2.5, None, "NaN"]}


def test_no_module_reads_json_by_itself() -> None:
    modules = [
        file
        for root in ("ultrascale", "constructs", "stacks", "k8s")
        for file in (ROOT / root).rglob("*.py")
        if not any(name in str(file) for name in ELSEWHERE)
    ]

    found = [file for file in modules if re.search(r"\bjson\.loads?\(", file.read_text())]

    assert [str(file.relative_to(ROOT)) for file in found] == ["ultrascale/documents.py"]
