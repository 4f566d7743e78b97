"""Folders of the repository that tests read."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
TESTS = (ROOT / "tests", ROOT / "examples" / "bert" / "tests")
"""Folders of tests that `make test` runs, as `testpaths` of `pyproject.toml` names them."""
