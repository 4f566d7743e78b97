"""Runs of the tests without a part, in a process forked from the one that has collected them."""

import gc
import importlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path
from types import FunctionType

import pytest

from tests.support.folders import ROOT
from tests.support.removal import parts
from tests.support.removal.node import SharedNode
from tests.support.removal.parts import Part
from tests.support.removal.recording import Recording

_MOST_CHILDREN_OF_NODE = 40
_LEAST_SECONDS = 20
# Exit status of pytest where there is no test.
_NONE_RAN = 5
_OUTCOMES = {0: "not missed", 1: "missed", 2: "too slow"}


class Trials:
    """Plugin that takes parts out of forks of its process instead of running the tests.

    Args:
        chosen: The parts.
        recording: The tests that reach them.
        results: File of one line of JSON a part.
        seconds: Limit of the CPU time of a part's tests.
        node: The Node.js process of all of them.
    """

    def __init__(
        self,
        chosen: Sequence[Part],
        recording: Recording,
        results: Path,
        seconds: float,
        node: SharedNode,
    ) -> None:
        self._node = node
        self._chosen = chosen
        self._recording = recording
        self._results = results
        self._seconds = seconds
        self._failed = False
        self._items: dict[str, pytest.Item] = {}
        self._functions: dict[tuple[str, str], list[FunctionType]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Judge one part after another."""
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        session.config.pluginmanager.unregister(reporter)
        self._items = {item.nodeid: item for item in session.items}
        self._prepare()
        for number, part in enumerate(self._chosen):
            if number % _MOST_CHILDREN_OF_NODE == 0:
                self._node.restart()
            begun = time.monotonic()
            tests = self._recording.tests_of(part)
            outcome, test = self._outcome(part, tests)
            line = {
                **{"kind": part.kind, "name": part.name, "change": part.change},
                **{"outcome": outcome, "by": test, "tests": len(tests)},
                "seconds": round(time.monotonic() - begun, 1),
            }
            with self._results.open("a") as file:
                file.write(f"{json.dumps(line)}\n")
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure."""
        self._failed = self._failed or report.failed

    def _prepare(self) -> None:
        """Import the product, and forget what collecting the tests has computed of it."""
        for module in {part.module for part in self._chosen}:
            importlib.import_module(module)
        gc.unfreeze()
        for known in gc.get_objects():
            if isinstance(known, FunctionType):
                place = known.__code__.co_filename, known.__code__.co_qualname
                self._functions.setdefault(place, []).append(known)
            elif type(known) is type(cache(len)):
                module = str(known.__module__)
                if module.startswith(("ultrascale", "tests.")) and ".catalog" not in module:
                    known.cache_clear()
        gc.freeze()

    def _remove(self, part: Part) -> None:
        if "/" in part.function:
            table, _, kind = part.function.partition("/")
            del getattr(importlib.import_module(part.module), table)[kind]
            return
        path = parts.path_of(part.module)
        code = parts.code_of(parts.lacking(part), part.function)
        for function in self._functions[str(path), part.function]:
            function.__code__ = code

    def _outcome(self, part: Part, tests: Sequence[str]) -> tuple[str, str]:
        order = [self._items[id] for id in tests if id in self._items]
        outcome, test = self._forked(part, order) if order else ("not reached", "")
        if outcome != "missed" and (files := self._recording.early_files(part)):
            return _fresh(part, sorted({*files, *(str(item.path) for item in order)}))
        return outcome, test

    def _forked(self, part: Part, order: Sequence[pytest.Item]) -> tuple[str, str]:
        with tempfile.TemporaryFile() as begun:
            child = os.fork()
            if child == 0:
                self._run(part, order, begun.fileno())
            _, status = os.waitpid(child, 0)
            # Programs that its tests have started.
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            begun.seek(0)
            numbers = begun.read().split()
        last = order[int(numbers[-1])].nodeid if numbers else ""
        if os.WIFSIGNALED(status):
            self._node.restart()
            return "missed", f"{last} (ended by signal {os.WTERMSIG(status)})"
        outcome = _OUTCOMES.get(os.waitstatus_to_exitcode(status), "broken")
        return outcome, last if outcome == "missed" else ""

    def _run(self, part: Part, order: Sequence[pytest.Item], writing: int) -> None:
        """Run the tests in this process, and end it."""
        status = 3
        try:
            os.setsid()
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            self._remove(part)
            status = self._status(order, writing)
            order[0].session._setupstate.teardown_exact(None)  # pyright: ignore
        except BaseException as error:
            os.write(2, repr(error).encode())
        finally:
            os._exit(status)

    def _status(self, order: Sequence[pytest.Item], writing: int) -> int:
        for number, item in enumerate(order):
            used = time.process_time()
            if used > self._seconds:
                return 2
            os.write(writing, f"{number}\n".encode())
            limit = int(used + _LEAST_SECONDS + 10 * self._recording.seconds_of(item.nodeid))
            resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
            signal.alarm(20 * limit)
            following = order[number + 1] if number + 1 < len(order) else None
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            if self._failed:
                return 1
        return 0


def _fresh(part: Part, files: Sequence[str]) -> tuple[str, str]:
    """Return the outcome in a new process, where imports lack the part already."""
    words = [sys.executable, "-m", "tests.support.removal.fresh", json.dumps(asdict(part)), *files]
    run = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", run.stdout, re.M)
    return "not missed" if run.returncode in (0, _NONE_RAN) else "missed", "".join(failed[:1])
