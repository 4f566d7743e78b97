"""Folders of the repository that tests read."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
CHARTS = Path(os.environ.get("ULTRASCALE_CHARTS") or ROOT / ".make" / "charts")
"""Packed charts of other projects, which `make charts` pulls."""
_PROJECTS = ("training", "examples/bert", "backend", "torchx")
TESTS = (ROOT / "tests", *(ROOT / project / "tests" for project in _PROJECTS))
"""Folders of tests that `make test` runs, as `testpaths` of `pyproject.toml` names them."""
