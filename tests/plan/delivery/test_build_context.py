"""An image's tag: a tag that lags behind its sources runs last week's training."""

import shutil
from pathlib import Path

import grimp
import pytest

from tests.support.folders import ROOT
from ultrascale.plan.delivery.build_context import SENT, SOURCES, build_context, content_tag
from ultrascale.resources import LEFT_OUT, resource


@pytest.fixture
def project(tmp_path: Path) -> Path:
    left_out = shutil.ignore_patterns("__pycache__")
    for name in SENT:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=left_out)
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def tag(dockerfile: str, root: Path) -> str:
    return content_tag(dockerfile, "amd64", locate=lambda path: root / path)


def tags(root: Path) -> dict[str, str]:
    return {name: tag(name, root) for name in SOURCES}


def test_the_same_sources_have_the_same_tag_elsewhere(project: Path) -> None:
    assert tags(project) == tags(ROOT)


@pytest.mark.parametrize(
    ("changed", "images"),
    [
        ("training/pyproject.toml", {"neuron", "nvidia", "posttrain", "cpu", "backend"}),
        ("images/nvidia/Dockerfile", {"nvidia", "backend"}),
    ],
)
def test_a_change_makes_new_images_of_it_and_of_who_names_them(
    project: Path, changed: str, images: set[str]
) -> None:
    before = tags(project)
    file = project / changed
    file.write_text(file.read_text() + "\n")
    after = tags(project)
    assert {name for name in after if after[name] != before[name]} == images
    # An image for other nodes has another tag.
    assert content_tag("tensorboard", "arm64") != content_tag("tensorboard", "amd64")


def test_a_renamed_module_makes_a_new_image(project: Path) -> None:
    before = tag("cpu", project)
    package = project / "training" / "ultrascale_training"
    (package / "__init__.py").rename(package / "other.py")

    assert tag("cpu", project) != before


def imported_by_the_backend() -> set[Path]:
    """Return each file of the core that the backend imports, at once or later."""
    graph = grimp.build_graph(
        "ultrascale", "ultrascale_backend", exclude_type_checking_imports=True, cache_dir=None
    )
    imported: set[str] = set()
    waiting = {name for name in graph.modules if name.startswith("ultrascale_backend")}
    while waiting:
        module = waiting.pop()
        imported.add(module)
        package = {module.rpartition(".")[0]} - {""}
        waiting |= (package | graph.find_modules_directly_imported_by(module)) - imported
    stems = [Path(*name.split(".")) for name in imported if not name.startswith("ultrascale_")]
    packages = {stem for stem in stems if (ROOT / stem).is_dir()}
    return {s / "__init__.py" if s in packages else s.with_suffix(".py") for s in stems}


def test_the_tag_of_the_backend_follows_what_it_imports_and_nothing_else() -> None:
    sources = {Path(path) for path in SOURCES["backend"] if path.startswith("ultrascale/")}
    imported = imported_by_the_backend()

    outside = [file for file in imported if not sources & {file, *file.parents}]
    unused = [path for path in sources if not [f for f in imported if f.is_relative_to(path)]]
    assert outside == unused == []


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

    assert patterns == ["*", *(f"!{path}" for path in SENT), *(f"**/{name}" for name in LEFT_OUT)]


def test_what_is_built_from_is_what_docker_would_be_sent() -> None:
    context = build_context(SOURCES)

    assert all(context[path] == resource(path) for path in context)
    sent = [path for path in SENT if not [file for file in context if file.startswith(path)]]
    assert sent == []
    assert not [path for path in context if "__pycache__" in path]
