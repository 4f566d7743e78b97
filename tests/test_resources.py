"""Files of the product: found in a checkout and in an installed package by the same path."""

from pathlib import Path

import pytest

from tests.support.folders import ROOT
from ultrascale import resources
from ultrascale.errors import UltrascaleError
from ultrascale.resources import resource


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a package that brings one image and nothing else."""
    package = tmp_path / "site-packages" / "ultrascale"
    image = package / "_resources" / "images" / "nvidia"
    image.mkdir(parents=True)
    (package / "config").mkdir()
    monkeypatch.setattr(resources, "_PACKAGE", package)
    monkeypatch.setattr(resources, "_INSTALLED", package / "_resources")
    return package


def test_a_checkout_uses_its_own_files_and_no_copies() -> None:
    assert resource("images/nvidia/Dockerfile") == ROOT / "images" / "nvidia" / "Dockerfile"
    assert resource("ultrascale/config") == ROOT / "ultrascale" / "config"


def test_an_installed_package_uses_what_it_brings(installed: Path) -> None:
    assert resource("images/nvidia") == installed / "_resources" / "images" / "nvidia"
    assert resource("ultrascale/config") == installed / "config"


def test_an_incomplete_installation_says_which_file_is_missing(installed: Path) -> None:
    missing = installed / "_resources" / "charts" / "training-job"

    with pytest.raises(UltrascaleError, match="the installation is incomplete") as caught:
        resource("charts/training-job")

    assert str(caught.value).startswith(f"{missing}: missing")
