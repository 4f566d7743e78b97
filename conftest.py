"""The layout guard, the Node.js that jsii runs on, and the one assembly that tests share."""

import gc
import os
import signal
import sys
from collections.abc import Generator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import settings
from hypothesis.internal import charmap
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from hypothesis.internal.intervalsets import IntervalSet
from xdist.remote import Producer

from tests.support.imports import import_from_its_place
from tests.support.optional import CHECKS, OPT_IN, missing, reasons
from tests.support.scheduling import SharedScheduling, begin_with_shared
from ultrascale.node import use_node

if TYPE_CHECKING:
    from tests.support.assembly import Assembly

use_node()
# Threads of torch wait for each other by spinning, on the core that another worker needs.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# A shell starts a job in the background with Ctrl-C ignored, and programs inherit that: those that
# tests interrupt would go on.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# Python's default is for small programs: each collection passes through all that aws_cdk, torch and
# seven thousand tests keep, a seventh of the time.
gc.set_threshold(50_000, 20, 20)
# A busy machine makes single examples slow; the time of a test is not what its examples judge.
settings.register_profile("patient", parent=settings.default, deadline=None)
settings.load_profile("patient")
# It would read and parse every module of ours in each worker, for seconds, to try their constants
# now and then; no setting turns that off.
# Source: https://github.com/HypothesisWorks/hypothesis/issues/4627
_NO_CONSTANTS = Constants()
providers._get_local_constants = lambda: _NO_CONSTANTS  # pyright: ignore[reportPrivateUsage]
_encodable = charmap.intervals_from_codec


@cache
def _without_a_look(codec_name: str) -> tuple[IntervalSet, IntervalSet]:
    """Return the characters of a codec, without encoding each, as a worker would in a new checkout.

    UTF-8 has all but surrogates.
    """
    if codec_name != "utf-8":
        return _encodable(codec_name)
    return IntervalSet(((0, 0xD7FF), (0xE000, sys.maxunicode))), IntervalSet(())


charmap.intervals_from_codec = _without_a_look

pytest_plugins = [
    "tests.support.calendar_fixtures",
    "tests.support.command_line",
    "tests.support.etcd_fixtures",
    "tests.support.node_checks",
    "tests.support.postgres_fixtures",
]

ROOT = Path(__file__).parent
_FORBIDDEN = ROOT / "constructs" / "__init__.py"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--require`: a marker whose tests must run, and not be skipped."""
    parser.addoption("--require", action="append", default=[], choices=[*CHECKS])


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to run while constructs/ is a package (see constructs/README.md)."""
    if _FORBIDDEN.exists():
        raise pytest.UsageError(
            f"delete {_FORBIDDEN}: it hides the PyPI library `constructs` from aws-cdk-lib"
        )
    required = cast("list[str]", config.getoption("require"))
    for marker, reason in missing(required).items():
        raise pytest.UsageError(f"--require={marker}: {reason}")


@pytest.hookimpl(optionalhook=True, wrapper=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """Run one worker more than there are cores: a fifth of the tests' time is waiting."""
    return (yield) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> SharedScheduling | None:
    """Let one worker have all files that share what begins slowly."""
    return SharedScheduling(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collect_directory(path: Path) -> None:
    """Let the library have the name that pytest gives the folder of tests beside our scheduler."""
    if path == ROOT / "torchx":
        import_module("torchx")


def pytest_collection(session: pytest.Session) -> None:
    """Let each worker import the files of tests from another place on."""
    import_from_its_place(session.config)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with what takes longest; skip what is not asked for, or needs what is not installed."""
    begin_with_shared(items)
    required = cast("list[str]", config.getoption("require"))
    unasked = {marker: OPT_IN[marker] for marker in OPT_IN if marker not in required}
    for marker, reason in {**missing(CHECKS), **unasked}.items():
        for item in items:
            if item.get_closest_marker(marker) is not None:
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line which tests need more than this environment has; `-rs` names their files."""
    reports = cast("list[pytest.TestReport]", terminalreporter.stats.get("skipped", []))
    if reports:
        skips = [cast("tuple[str, int, str]", report.longrepr) for report in reports]
        terminalreporter.write_line(f"skipped: {reasons(skips)}")


def pytest_collection_finish() -> None:
    """Leave what was imported and collected out of every later garbage collection: it stays."""
    gc.freeze()


def _synthesized(name: str, factory: pytest.TempPathFactory) -> "Assembly":
    from tests.support.assembly import synthesize

    return synthesize(ROOT / "clusters" / f"{name}.yaml", factory.mktemp(name))


@pytest.fixture(scope="session")
def trainium(tmp_path_factory: pytest.TempPathFactory) -> "Assembly":
    """Everything that clusters/trainium-bert.yaml becomes."""
    return _synthesized("trainium-bert", tmp_path_factory)


@pytest.fixture(scope="session")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> "Assembly":
    """Everything that clusters/mixed-capacity.yaml becomes."""
    return _synthesized("mixed-capacity", tmp_path_factory)


@pytest.fixture(scope="session")
def hybrid(tmp_path_factory: pytest.TempPathFactory) -> "Assembly":
    """Everything that clusters/hybrid-hyperpod.yaml becomes."""
    return _synthesized("hybrid-hyperpod", tmp_path_factory)


@pytest.fixture(scope="session")
def auto(tmp_path_factory: pytest.TempPathFactory) -> "Assembly":
    """Everything that clusters/auto-mode.yaml becomes."""
    return _synthesized("auto-mode", tmp_path_factory)


@pytest.fixture(scope="session")
def ultra(tmp_path_factory: pytest.TempPathFactory) -> "Assembly":
    """Everything that clusters/ultra-100k.yaml becomes."""
    return _synthesized("ultra-100k", tmp_path_factory)


@pytest.fixture(scope="session")
def llm(tmp_path_factory: pytest.TempPathFactory) -> "Assembly":
    """Everything that clusters/llm-kueue.yaml becomes."""
    return _synthesized("llm-kueue", tmp_path_factory)


@pytest.fixture(scope="session")
def ray(tmp_path_factory: pytest.TempPathFactory) -> "Assembly":
    """Everything that clusters/ray.yaml becomes."""
    return _synthesized("ray", tmp_path_factory)


@pytest.fixture(scope="session")
def estate(tmp_path_factory: pytest.TempPathFactory) -> "Assembly":
    """Everything that clusters/existing-estate.yaml becomes."""
    return _synthesized("existing-estate", tmp_path_factory)


@pytest.fixture(scope="session")
def serving(tmp_path_factory: pytest.TempPathFactory) -> "Assembly":
    """Everything that clusters/serving.yaml becomes."""
    return _synthesized("serving", tmp_path_factory)
