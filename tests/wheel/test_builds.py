"""Builds of the package: the same bytes each time, and all that an installation needs."""

import hashlib
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

import pytest

from tests.support.folders import ROOT
from ultrascale.plan.delivery.build_context import SOURCES, build_context, content_tag
from ultrascale.resources import SHIPPED, files

pytestmark = pytest.mark.wheel

PREFIX = "ultrascale/_resources/"
# The tags of all images, and what the CDK takes the hash of the build's folder from.
PROGRAM = """
import hashlib, json, sys
from ultrascale.plan.delivery.build_context import SOURCES, build_context, content_tag
from ultrascale.resources import resource
print(json.dumps({
    "images": str(resource("images")),
    "tags": {name: content_tag(name, "amd64") for name in SOURCES},
    "context": {path: hashlib.sha256(file.read_bytes()).hexdigest()
                for path, file in build_context(SOURCES).items()},
}))
"""


class Builds(NamedTuple):
    """Distributions that were built from the checkout, and the interpreter that built them."""

    python: Path
    wheel: Path
    again: Path
    from_sdist: Path
    editable: Path


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Builds:
    folder = tmp_path_factory.mktemp("builds")
    python = folder / "tools" / "bin" / "python"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    subprocess.run([sys.executable, "-m", "venv", folder / "tools"], check=True)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *project["build-system"]["requires"]], check=True)

    def build(target: str, to: str, source: Path = ROOT) -> Path:
        command = [python, "-m", "hatchling", "build", "--target", target]
        subprocess.run(
            [*command, "--directory", folder / to], cwd=source, check=True, capture_output=True
        )
        (built,) = (folder / to).iterdir()
        return built

    with tarfile.open(build("sdist", "sdist")) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    return Builds(
        python=python,
        wheel=build("wheel:standard", "wheel"),
        again=build("wheel:standard", "again"),
        from_sdist=build("wheel:standard", "from-sdist", unpacked),
        editable=build("wheel:editable", "editable"),
    )


def told_by(python: Path, installed: Path) -> dict[str, object]:
    import json

    # What planning imports lies in the environment of the tests, behind the package.
    own = [path for path in sys.path if path.endswith("site-packages")]
    paths = [str(installed), *own]
    program = f"import sys; sys.path[:0] = {paths!r}\n{PROGRAM}"
    answer = subprocess.run(
        [python, "-I", "-c", program], cwd=installed, check=True, capture_output=True, text=True
    )
    return json.loads(answer.stdout)


def digests(contents: Mapping[str, Path]) -> dict[str, str]:
    return {path: hashlib.sha256(file.read_bytes()).hexdigest() for path, file in contents.items()}


def test_two_builds_are_equal(builds: Builds) -> None:
    assert builds.wheel.read_bytes() == builds.again.read_bytes()


def test_the_source_distribution_builds_the_same_wheel(builds: Builds) -> None:
    assert builds.wheel.read_bytes() == builds.from_sdist.read_bytes()


def test_the_wheel_holds_everything_that_is_no_module(builds: Builds) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", *SHIPPED], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split()
    with ZipFile(builds.wheel) as archive:
        shipped = {
            name.removeprefix(PREFIX): archive.read(name)
            for name in archive.namelist()
            if name.startswith(PREFIX)
        }

    assert set(tracked) <= shipped.keys()
    assert all((ROOT / path).read_bytes() == content for path, content in shipped.items())


def test_it_has_types_and_takes_no_name_of_others(builds: Builds) -> None:
    with ZipFile(builds.wheel) as archive:
        names = archive.namelist()

    own = {"ultrascale"} | {
        f"ultrascale_{name}" for name in ("constructs", "k8s", "stacks", "torchx")
    }
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == own
    assert {f"{top}/py.typed" for top in own} <= {*names}
    assert not [name for name in names if "__pycache__" in name]


def test_images_of_an_installed_package_have_the_tags_of_the_checkout(
    builds: Builds, tmp_path: Path
) -> None:
    with ZipFile(builds.wheel) as archive:
        archive.extractall(tmp_path)
    # As pip does it: compiled files are no sources.
    subprocess.run([builds.python, "-m", "compileall", "-q", tmp_path], check=True)

    told = told_by(builds.python, tmp_path)

    assert told == {
        "images": str(tmp_path / PREFIX / "images"),
        "tags": {name: content_tag(name, "amd64") for name in SOURCES},
        "context": digests(build_context(SOURCES)),
    }


def test_an_editable_install_holds_no_copies_that_go_stale(builds: Builds) -> None:
    with ZipFile(builds.editable) as archive:
        assert not [name for name in archive.namelist() if name.startswith("ultrascale/")]
    assert not (ROOT / "ultrascale" / "_resources").exists()
    assert told_by(builds.python, ROOT)["images"] == str(ROOT / "images")


def test_nothing_shipped_is_empty() -> None:
    assert all([*files(ROOT / name)] for name in SHIPPED)
