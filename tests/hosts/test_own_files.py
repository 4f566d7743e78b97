"""Files of the backend's image: as long as they are the product's own, they are only packed."""

from pathlib import Path

import pytest

from tests.support.folders import ROOT
from ultrascale.hosts import read_hosts

TABLE = "ultrascale/catalog/recipes.py"
DOCKERFILE = "images/cpu/Dockerfile"


def packed(folder: Path, path: str, *, more: str = "") -> set[str]:
    """Return the hosts of a file of the product in the sources of a build."""
    file = folder / "asset.0123abcd" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text((ROOT / path).read_text() + more)
    return {use.host for use in read_hosts(folder, "us-east-1")}


def test_pages_of_facts_are_no_hosts(tmp_path: Path) -> None:
    assert packed(tmp_path, TABLE) == set()


def test_a_changed_file_is_read(tmp_path: Path) -> None:
    assert "planted.example" in packed(tmp_path, TABLE, more="\nX = 'https://planted.example'\n")


@pytest.mark.parametrize(("is_copied", "read"), [(False, True), (True, False)])
def test_a_dockerfile_is_read_where_no_copy_of_it_is_built(
    tmp_path: Path, is_copied: bool, read: bool
) -> None:
    if is_copied:
        (tmp_path / "asset.0123abcd" / "mirrored").mkdir(parents=True)

    assert ("public.ecr.aws" in packed(tmp_path, DOCKERFILE)) == read
