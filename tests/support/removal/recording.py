"""The tests that reach parts of the product: `python -m tests.support.removal.recording FILE`."""

import builtins
import functools
import importlib
import json
import math
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from tests.support.folders import ROOT
from tests.support.removal import parts
from tests.support.removal.parts import Part
from tools.import_graph import words

# They run in environments of their own or in copies of the tree, or judge nothing that can go.
_OTHERS = (
    *("wheel", "titan", "serving", "fuzz", "docs", "tools", "support", "lambdas"),
    *("account", "cluster_api", "deploy", "images", "parts/test_table.py", "test_environments.py"),
)
_PRODUCT = ("ultrascale", "tests")
_SECONDS_OF_A_PART = 0.001
_MARKERS = ("training", "postgres", "setup", "jupyter", "wheel")
OPTIONS = (
    *("-q", "--tb=no", "-p", "no:xdist", "-p", "no:cacheprovider", "--hypothesis-seed=0"),
    *("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT)),
    # What has been imported before pytest needs no better messages.
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
    *("-m", " and ".join(f"not {marker}" for marker in _MARKERS)),
    *(f"--ignore={ROOT / 'tests' / name}" for name in _OTHERS),
)
"""Options of pytest for each run."""


class SameExamples:
    """Plugin that lets hypothesis try the same examples in each run, keep none and shrink none."""

    def pytest_configure(self) -> None:
        """Load the profile before tests are imported."""
        # Before pytest has rewritten its assertions, it may not be imported.
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile(
            "same", settings.default, database=None, derandomize=True, phases=phases
        )
        settings.load_profile("same")


class Recorder:
    """Plugin that records which tests, fixtures, and cached functions reach which parts."""

    def __init__(self) -> None:
        # Parts reached by what runs: a file's imports, a test, a fixture, a cached function.
        self._stack: list[set[str]] = [set()]
        self._fixtures: dict[Any, set[str]] = {}
        self._seconds: dict[str, float] = {}  # Of fixtures that several tests share
        self._tests: dict[str, tuple[float, list[str]]] = {}
        self._shared: dict[str, list[str]] = {}
        self._reached: dict[str, set[str]] = defaultdict(set)
        self._early: dict[str, set[str]] = defaultdict(set)
        self._failed: set[str] = set()

    def seen(self, id: str, value: object) -> object:
        """Note that a part is reached."""
        self._stack[-1].add(id)
        return value

    def said(self, id: str, value: object) -> object:
        """Note that a function says something."""
        return value if value is None else self.seen(id, value)

    def each(self, id: str, values: Iterable[object]) -> Iterator[object]:
        """Note that a function yields something."""
        for value in values:
            yield self.seen(id, value)

    @contextmanager
    def inside(self) -> Generator[set[str]]:
        """Give what is reached meanwhile, which belongs to what is around as well."""
        self._stack.append(set())
        try:
            yield self._stack[-1]
        finally:
            reached = self._stack.pop()
            self._stack[-1] |= reached

    def remembering(self, function: Callable[..., Any], keep: Callable[..., Any]) -> Any:
        """Return a cached function whose hits reach what its first call reached."""
        kept = keep(function)
        if not str(function.__module__).startswith(_PRODUCT):
            return kept
        reached: dict[object, set[str]] = {}

        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            key = (arguments, *named.items())
            if key not in reached:
                with self.inside() as inside:
                    value = kept(*arguments, **named)
                reached[key] = inside
                return value
            self._stack[-1] |= reached[key]
            return kept(*arguments, **named)

        def clear() -> None:
            kept.cache_clear()
            reached.clear()

        call.__dict__["cache_clear"] = clear
        return call

    def install(self) -> None:
        """Let modules that are imported from now on report, and caches remember."""
        for hook in (self.seen, self.said, self.each):
            setattr(builtins, f"__{hook.__name__}__", hook)
        renderers = {path for root in parts.SOURCE_ROOTS for _, path in parts.modules(root)}
        ours = {str(path) for path in renderers | {path for _, path in parts.modules("ultrascale")}}
        load = SourceFileLoader.get_code

        def get_code(loader: SourceFileLoader, fullname: str) -> CodeType | None:
            path = loader.get_filename(fullname)
            return parts.reporting(Path(path)) if path in ours else load(loader, fullname)

        SourceFileLoader.get_code = get_code  # pyright: ignore[reportAttributeAccessIssue]
        cache, lru_cache = functools.cache, functools.lru_cache

        def unbounded(function: Callable[..., Any]) -> Any:
            return self.remembering(function, cache)

        def bounded(maxsize: Any = 128, typed: bool = False) -> Any:
            if callable(maxsize):
                return self.remembering(maxsize, lru_cache)
            return partial(self.remembering, keep=lru_cache(maxsize, typed))

        for name, decorator in ("cache", unbounded), ("lru_cache", bounded):
            setattr(functools, name, decorator)

    def pytest_collection_finish(self) -> None:
        """Let the guard's table report by type of resource."""
        module, _, attribute = parts.TABLE.partition(":")
        table = getattr(importlib.import_module(module), attribute)
        for kind, judges in table.items():
            name = f"{parts.TABLE}/{kind}"
            table[kind] = tuple(self._reporting(judge, name) for judge in judges)

    def _reporting(self, judge: Callable[..., object], name: str) -> Callable[..., object]:
        return lambda *arguments: self.said(name, judge(*arguments))

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, object, object]:
        """Note what the imports of a file reach, which runs before a part can be removed."""
        with self.inside() as reached:
            report = yield
        for id in reached if isinstance(collector, pytest.Module) else ():
            self._early[id].add(str(collector.path))
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any]
    ) -> Generator[None, object, object]:
        """Note what a fixture reaches, and how long it takes."""
        begun = time.monotonic()
        with self.inside() as reached:
            value = yield
        self._fixtures[fixturedef] = self._fixtures.get(fixturedef, set()) | reached
        if fixturedef.scope != "function":
            name = f"{fixturedef.baseid}::{fixturedef.argname}"
            self._seconds[name] = max(
                self._seconds.get(name, 0), round(time.monotonic() - begun, 3)
            )
        return value

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Note what a test reaches, and how long it takes."""
        begun, before = time.monotonic(), sum(self._seconds.values())
        with self.inside() as reached:
            result = yield
        seconds = time.monotonic() - begun - (sum(self._seconds.values()) - before)
        # What a cache or a fixture has kept from an earlier test has to be done in a fork.
        seconds = max(seconds, 0) + len(reached) * _SECONDS_OF_A_PART
        self._tests[item.nodeid] = (round(seconds, 3), self._shared.pop(item.nodeid, []))
        for id in reached:
            self._reached[id].add(item.nodeid)
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        """Let a test reach what its fixtures reached, also for an earlier test."""
        request: Any = item._request  # pyright: ignore
        definitions: Sequence[Any] = [*request._fixture_defs.values()]
        for fixture in definitions:
            self._stack[-1] |= self._fixtures.get(fixture, set())
        names = [f"{fixture.baseid}::{fixture.argname}" for fixture in definitions]
        self._shared[item.nodeid] = [name for name in names if name in self._seconds]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Leave out what fails or is skipped anyhow."""
        if not report.passed:
            self._failed.add(report.nodeid)

    def write(self, file: Path) -> None:
        """Write the recording: tests with their seconds and fixtures, and parts by test."""
        ids = [id for id in self._tests if id not in self._failed]
        numbers = {id: number for number, id in enumerate(ids)}

        def mask(tests: Iterable[str]) -> str:
            return hex(sum(1 << numbers[id] for id in tests if id in numbers))

        document = {
            "tests": [(id, *self._tests[id]) for id in ids],
            "fixtures": self._seconds,
            "reached": {id: mask(tests) for id, tests in self._reached.items()},
            "early": {id: sorted(files) for id, files in self._early.items()},
        }
        file.write_text(json.dumps(document))


class Recording:
    """The tests that reach each part, as a `Recorder` wrote them."""

    def __init__(self, file: Path) -> None:
        document = json.loads(file.read_text())
        self._tests: list[tuple[str, float, list[str]]] = document["tests"]
        self._fixtures: Mapping[str, float] = document["fixtures"]
        self._reached: Mapping[str, str] = document["reached"]
        self._early: Mapping[str, list[str]] = document["early"]
        self._seconds = {id: seconds for id, seconds, _ in self._tests}

    def seconds_of(self, test: str) -> float:
        """Return how long a test takes with its own fixtures."""
        return self._seconds[test]

    def early_files(self, part: Part) -> Sequence[str]:
        """Return the files of tests whose imports reach a part."""
        return self._early.get(part.name, [])

    def tests_of(self, part: Part) -> Sequence[str]:
        """Return the tests that reach a part: cheap ones first, and among these the nearest."""
        mask = int(self._reached.get(part.name, "0"), 16)
        near = words(part.name)

        def place(test: tuple[str, float, list[str]]) -> tuple[int, int, str, float]:
            id, seconds, fixtures = test
            cost = seconds + sum(map(self._fixtures.__getitem__, fixtures))
            file = id.partition("::")[0]
            return round(math.log(cost + 0.1, 4)), -len(near & words(file)), file, cost

        reached = [test for number, test in enumerate(self._tests) if mask >> number & 1]
        return [id for id, _, _ in sorted(reached, key=place)]


def main(file: str, folder: str, *places: str) -> int:
    """Run the tests and write their recording."""
    recorder = Recorder()
    recorder.install()
    arguments = [*OPTIONS, f"--basetemp={folder}", *places]
    status = pytest.main(arguments, [SameExamples(), recorder])
    if status in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        recorder.write(Path(file))
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
