"""Optional programs and libraries that tests need, by marker."""

import importlib.util
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from tests.support.folders import CHARTS, ROOT
from tests.support.no_torch import NO_TORCH

NO_JUPYTER = "no JupyterLab here: `pip install jupyterlab` elsewhere, and its bin folder on PATH"
NO_POSTGRES = "no PostgreSQL here: install the Debian package postgresql"

NO_CHARTS = "the charts of other projects are not here: run `make charts`, which pulls them"
NO_BROWSER = "no site here, or no browser: `make docs-site`, and the Debian package "
NO_SETUP = "the CDK's command line is not installed: run `make setup`"


def _torch() -> str | None:
    return NO_TORCH if importlib.util.find_spec("torch") is None else None


def _postgres() -> str | None:
    from tests.support.postgres_server import find_program

    return None if find_program("initdb") and find_program("postgres") else NO_POSTGRES


def _setup() -> str | None:
    return None if (ROOT / "node_modules" / "aws-cdk").exists() else NO_SETUP


def _jupyter() -> str | None:
    return NO_JUPYTER if shutil.which("jupyter-lab") is None else None


def _charts() -> str | None:
    return None if any(CHARTS.glob("*.tgz")) else NO_CHARTS


OPT_IN = {"wheel": "takes minutes and a package index: `make wheel-test` runs it"}
"""Markers whose tests run only where `--require` names them, and why."""


def _uv() -> str | None:
    found = Path(sys.executable).with_name("uv").is_file()
    return None if found else "no uv here: install requirements-dev.txt"


def _browser(package: str, *names: str) -> str | None:
    name = "iframe-worker.js"
    built = ROOT / "site" / "assets" / name
    source = ROOT / "tools" / "site" / name
    current = built.is_file() and built.read_bytes() == source.read_bytes()
    return None if current and any(map(shutil.which, names)) else NO_BROWSER + package


# What is missing; None where nothing is.
CHECKS: dict[str, Callable[[], str | None]] = {
    "training": _torch,
    "postgres": _postgres,
    "setup": _setup,
    "jupyter": _jupyter,
    "wheel": _uv,
    "charts": _charts,
    "browser": partial(_browser, "chromium", "chromium"),
    "firefox": partial(_browser, "firefox-esr", "firefox", "firefox-esr"),
}


def missing(markers: Iterable[str]) -> Mapping[str, str]:
    """Return why tests of ``markers`` cannot run; nothing for those that can."""
    reasons = {marker: CHECKS[marker]() for marker in markers}
    return {marker: reason for marker, reason in reasons.items() if reason is not None}


def reasons(skips: Iterable[tuple[str, int, str]]) -> str:
    """Return why tests were skipped, the most frequent reason first, as one line.

    Args:
        skips: What pytest keeps of a skip: file, line and the text of the reason.
    """
    counts = Counter(text.removeprefix("Skipped: ") for _, _, text in skips)
    return "; ".join(f"{count} {text}" for text, count in counts.most_common())
