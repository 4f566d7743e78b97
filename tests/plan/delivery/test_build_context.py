"""An image's tag: a tag that lags behind its sources runs last week's training."""

import shutil
from pathlib import Path

import pytest

from ultrascale.errors import UltrascaleError
from ultrascale.plan.delivery.build_context import FOLDERS, LEFT_OUT, ROOT, SOURCES, content_tag


@pytest.fixture
def project(tmp_path: Path) -> Path:
    left_out = shutil.ignore_patterns("__pycache__")
    for name in FOLDERS:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=left_out)
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def tags(root: Path) -> dict[str, str]:
    return {name: content_tag(name, "amd64", root=root) for name in SOURCES}


def test_the_same_sources_have_the_same_tag_elsewhere(project: Path) -> None:
    assert tags(project) == tags(ROOT)


def test_a_changed_training_program_makes_new_images_of_it_and_of_who_names_them(
    project: Path,
) -> None:
    before = tags(project)
    program = project / "training" / "pyproject.toml"
    program.write_text(program.read_text() + "\n")

    after = tags(project)

    assert {name for name in after if after[name] != before[name]} == {
        *("neuron", "nvidia", "cpu", "backend")
    }


def test_a_new_base_makes_a_new_image_of_its_own_and_of_who_names_it(project: Path) -> None:
    before = tags(project)
    dockerfile = project / "images" / "nvidia" / "Dockerfile"
    dockerfile.write_text(dockerfile.read_text().replace("2.13.0-cu133", "2.14.0-cu133"))

    after = tags(project)

    assert {name for name in after if after[name] != before[name]} == {"nvidia", "backend"}


def test_a_renamed_module_makes_a_new_image(project: Path) -> None:
    before = content_tag("cpu", "amd64", root=project)
    package = project / "training" / "ultrascale_training"
    (package / "__init__.py").rename(package / "other.py")

    assert content_tag("cpu", "amd64", root=project) != before


def test_an_image_for_other_nodes_has_another_tag() -> None:
    assert content_tag("tensorboard", "arm64") != content_tag("tensorboard", "amd64")


@pytest.mark.parametrize(
    "left", ["__pycache__/model.cpython-312.pyc", "x.egg-info/PKG-INFO", ".pytest_cache/README.md"]
)
def test_what_tools_leave_behind_changes_no_tag(project: Path, left: str) -> None:
    before = tags(project)
    file = project / "training" / "ultrascale_training" / left
    file.parent.mkdir(exist_ok=True)
    file.write_text("left")

    assert tags(project) == before


def test_docker_leaves_out_what_the_tag_leaves_out() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]

    assert patterns == ["*", *(f"!{f}" for f in FOLDERS), *(f"**/{name}" for name in LEFT_OUT)]


def test_an_installed_package_without_sources_says_where_images_are_built(tmp_path: Path) -> None:
    with pytest.raises(UltrascaleError, match="build images from a clone of the project"):
        content_tag("cpu", "amd64", root=tmp_path)
