"""Folders of the repository that tests read."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
_PROJECTS = ("training", "examples/bert", "backend", "torchx")
TESTS = (ROOT / "tests", *(ROOT / project / "tests" for project in _PROJECTS))
"""Folders of tests that `make test` runs, as `testpaths` of `pyproject.toml` names them."""
