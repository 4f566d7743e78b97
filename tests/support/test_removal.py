"""The judge of the tests: removed parts, tests that miss them, and parts that no test misses."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from tests.support.folders import ROOT
from tests.support.removal import parts
from tests.support.removal.recording import Recorder

_RENDERER = '''
def pod(plan, *, labels=None):
    """Return a pod."""
    spec = {"name": plan, "tolerations": [key for key in ("a", "b") if key != plan]}
    return dict(spec, labels=labels) if labels else spec
'''
_RULE = '''
@rule(severity="warning")
def names_differ(names):
    """Yield twins."""
    for name in names:
        if names.count(name) > 1:
            yield name
    if "none" in names:
        raise ValueError(names)
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of a source root of its own."""
    monkeypatch.setattr(parts, "ROOT", tmp_path)
    file = tmp_path / "k8s" / "ultrascale_k8s" / "pods.py"
    file.parent.mkdir(parents=True)
    file.write_text(_RENDERER)
    return file


@pytest.mark.parametrize(
    ("number", "change", "rendered"),
    [
        (0, "key 'name' dropped", {"tolerations": ["b"], "labels": "x"}),
        (1, "key 'tolerations' dropped", {"name": "a", "labels": "x"}),
        (2, "condition key != plan turned", {"name": "a", "tolerations": ["a"], "labels": "x"}),
        (3, "condition labels turned", {"name": "a", "tolerations": ["b"]}),
        (4, "keyword labels of dict dropped", {"name": "a", "tolerations": ["b"]}),
    ],
)
def test_a_renderer_without_a_place_renders_the_rest(
    module: Path, number: int, change: str, rendered: object
) -> None:
    part = parts.named(f"ultrascale_k8s.pods:pod#{number}")
    names = executed(parts.lacking(part))
    assert (part.kind, part.change) == ("renderer", change)
    assert names["pod"]("a", labels="x") == rendered


def test_places_of_a_renderer_report_where_they_are_reached(module: Path) -> None:
    recorder = Recorder()
    names = executed(parts.reporting(module), __seen__=recorder.seen)
    with recorder.inside() as reached:
        assert names["pod"]("a") == {"name": "a", "tolerations": ["b"]}
    # Without labels the keyword is not reached.
    assert reached == {f"ultrascale_k8s.pods:pod#{number}" for number in range(4)}


def test_a_rule_reports_what_it_says_or_raises_and_says_nothing_once_removed(module: Path) -> None:
    module.write_text(_RULE)
    recorder = Recorder()
    tools = {"__seen__": recorder.seen, "__said__": recorder.said}
    names_differ = executed(parts.reporting(module), **tools)["names_differ"]
    part = parts.named("ultrascale_k8s.pods:names_differ")
    for names, says in (["a"], False), (["a", "a"], True), (["none"], True):
        with recorder.inside() as reached, suppress(ValueError):
            list(names_differ(names))
        assert reached == ({part.name} if says else set())
    assert part.kind == "rule"
    assert [*executed(parts.lacking(part))["names_differ"](["a", "a"])] == []


def test_a_hit_of_a_cache_reaches_what_its_first_call_reached() -> None:
    recorder = Recorder()

    def double(number: int) -> int:
        recorder.seen("double", number)
        return 2 * number

    cached = recorder.remembering(double, cache)
    with recorder.inside() as first:
        assert cached(1) == 2
    with recorder.inside() as second:
        assert cached(1) == 2
    assert first == second == {"double"}


_TESTS = """
import pytest

from ultrascale_k8s._pods import resources, selector

SELECTOR = selector("a")


@pytest.fixture(scope="module")
def pod():
    return resources(cpu="1", memory="1Gi", memory_limit="2Gi")


def test_pod(pod):
    assert pod


def test_requests(pod):
    assert pod["requests"] == {"cpu": "1", "memory": "1Gi"}


def test_selector():
    assert SELECTOR
"""


def test_command_names_the_parts_that_no_test_misses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "--an-option-of-whoever-runs-the-suite")
    tests, results = tmp_path / "test_pods.py", tmp_path / "results.jsonl"
    tests.write_text(_TESTS)
    names = [f"ultrascale_k8s._pods:{place}" for place in ("resources#0", "resources#1")]
    names += ["ultrascale_k8s._pods:selector#0", "ultrascale_k8s._pods:budget#0"]
    command = [sys.executable, "-m", "tests.support.removal", str(results), "--only", *names]
    command += ["--tests", str(tests), "--cache", str(tmp_path / "cache")]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    assert [(line["outcome"], line["by"].rpartition("::")[2]) for line in lines] == [
        ("missed", "test_requests"),
        ("not missed", ""),
        # Its result was made when the file was imported.
        ("missed", "test_selector"),
        ("not reached", ""),
    ]
    assert "renderer: 2 of 4 missed" in run.stdout
    assert f"not missed: {names[1]}: key 'limits' dropped (2 tests" in run.stdout
    assert run.returncode == 1


def _registered(function: Callable[..., Any], **_: object) -> Callable[..., Any]:
    return function


def executed(code: CodeType, **names: object) -> Mapping[str, Any]:
    """Return the names of a module that runs among other names."""
    module: dict[str, Any] = {"rule": partial(partial, _registered), **names}
    exec(code, module)
    return module
