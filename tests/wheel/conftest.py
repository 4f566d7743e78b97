"""Environments with the wheel, each made once."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.installed import Installed, build_wheel, install


@pytest.fixture(scope="session")
def outside() -> Iterator[Path]:
    """A folder outside the checkout that other users may enter, unlike those of pytest."""
    with tempfile.TemporaryDirectory(prefix="ultrascale-wheel-") as name:
        folder = Path(name).resolve()
        folder.chmod(0o755)
        yield folder


@pytest.fixture(scope="session")
def wheel(outside: Path) -> Path:
    return build_wheel(outside / "wheel")


@pytest.fixture(scope="session")
def installed(outside: Path, wheel: Path) -> Installed:
    """The wheel with the versions that it was tested with."""
    return install(outside / "tested", f"{wheel}[tested]")
