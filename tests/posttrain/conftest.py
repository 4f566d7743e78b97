"""Tests of post-training, which `make posttrain` runs in an environment of their own."""

import os
import resource
from collections import defaultdict
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest

# `make test` has no TRL: its dependencies are a gigabyte.
collect_ignore_glob = [] if find_spec("trl") else ["test_*.py"]
# Before transformers is imported: nothing here is asked of a hub.
os.environ |= {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}

_SECONDS: defaultdict[str, float] = defaultdict(float)
_PEAKS: dict[str, int] = {}
_COMPUTED: list[float] = [0.0]


def _usage() -> tuple[float, int]:
    """Return the seconds of all processors until now, and the largest of all ended processes."""
    own, ended = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + ended.ru_utime + ended.ru_stime, ended.ru_maxrss * 1024


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep the seconds of a test and of its fixtures, and its largest process."""
    _SECONDS[report.nodeid] += report.duration
    if report.when == "teardown" and find_spec("trl"):
        from tests.support.forked_worlds import PEAKS

        computed, of_any = _usage()
        _PEAKS[report.nodeid] = max(PEAKS, default=of_any)
        _COMPUTED.append(computed)
        PEAKS.clear()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print them, the longest first."""
    terminalreporter.section("seconds, of these computed, and GB of the largest process")
    computed = dict(zip(_PEAKS, (b - a for a, b in pairwise(_COMPUTED)), strict=True))
    for name in sorted(_PEAKS, key=lambda name: -_SECONDS[name]):
        figures = f"{_SECONDS[name]:6.1f} s {computed[name]:6.1f} s {_PEAKS[name] / 1e9:5.2f} GB"
        terminalreporter.line(f"{figures}  {name.removeprefix('tests/posttrain/')}")


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a model of random weights."""
    import toys

    return toys.model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session")
def chats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of chats that repeat a word."""
    import toys

    return toys.write(tmp_path_factory.mktemp("chats"), toys.chats(2000))


@pytest.fixture(scope="session")
def tuned(model: Path, chats: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a model that SFT has taught to repeat the user's word."""
    import worlds

    output = tmp_path_factory.mktemp("tuned") / "sft"
    words = [
        *(f"--model_name_or_path={model}", f"--dataset_name={chats}", "--max_steps=200"),
        *("--learning_rate=3e-3", "--per_device_train_batch_size=16", "--seed=3"),
    ]
    worlds.run(2, "sft", words, output)
    return output
