"""The layout guard, the Node.js that jsii runs on, and the one assembly that tests share."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ultrascale.node import use_bundled_node

if TYPE_CHECKING:
    from tests.assembly import Assembly

use_bundled_node()

pytest_plugins = ["tests.calendar_fixtures"]

ROOT = Path(__file__).parent.parent
_FORBIDDEN = ROOT / "constructs" / "__init__.py"


def pytest_configure() -> None:
    """Refuse to run while constructs/ is a package (see constructs/README.md)."""
    if _FORBIDDEN.exists():
        raise pytest.UsageError(
            f"delete {_FORBIDDEN}: it hides the PyPI library `constructs` from aws-cdk-lib"
        )


@pytest.fixture(scope="session")
def trainium(tmp_path_factory: pytest.TempPathFactory) -> "Assembly":
    """Everything that clusters/trainium-bert.yaml becomes."""
    from tests.assembly import synthesize

    return synthesize(ROOT / "clusters" / "trainium-bert.yaml", tmp_path_factory.mktemp("trainium"))


@pytest.fixture(scope="session")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> "Assembly":
    """Everything that clusters/mixed-capacity.yaml becomes."""
    from tests.assembly import synthesize

    return synthesize(ROOT / "clusters" / "mixed-capacity.yaml", tmp_path_factory.mktemp("mixed"))


@pytest.fixture(scope="session")
def auto(tmp_path_factory: pytest.TempPathFactory) -> "Assembly":
    """Everything that clusters/auto-mode.yaml becomes."""
    from tests.assembly import synthesize

    return synthesize(ROOT / "clusters" / "auto-mode.yaml", tmp_path_factory.mktemp("auto"))
