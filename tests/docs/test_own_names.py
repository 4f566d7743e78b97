"""Nothing of ours is installed by its name, which is registered on no public package index.

Whoever registers it there would run code on the machines of our users.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cases import for_each
from tests.support.folders import ROOT
from tests.support.pipelines import WHEEL, load_pipeline, two_accounts
from ultrascale.init import STARTS, defaults, given_source, init

OURS = {
    tomllib.loads(path.read_text())["project"]["name"]
    for pattern in ("pyproject.toml", "*/pyproject.toml", "examples/*/pyproject.toml")
    for path in ROOT.glob(pattern)
}
_NAME = rf"(?:{'|'.join(sorted(re.escape(name) for name in OURS))})(?:\[[\w,]*\])?"
_INSTALL = re.compile(
    r"(?:\bpip3? (?:install|wheel|download)|\buv(?: pip)? (?:add|install)|\buvx"
    r"|\b(?:uv tool|pipx) (?:install|run)|_PIP\}) ([^&|;#`\n]*)"
)
_BARE = re.compile(rf"{_NAME}(?:[=<>!~].*)?")
_LOCKED = re.compile(rf"""(?:name = )?["']?{_NAME}["']? *(?:[=<>!~].*)?""")
_TEXTS = {".md", ".py", ".sh", ".txt", ".toml", ".yaml", ".yml", ".json", ".tpl", ".svg", ""}
_FOLDERS = (
    *("backend", "charts", "clusters", "constructs", "docs", "examples", "images", "jobs", "k8s"),
    *("lib", "schema", "stacks", "tools", "training", "ultrascale"),
)
_COMMIT = f"git+https://example.com/ultrascale.git@{'0' * 40}"


def by_name(text: str) -> list[str]:
    """Return the commands of ``text`` that install one of ours by its name."""
    text = re.sub(r"\{(?:release\.)?PRODUCT\}", "ultrascale", text.replace("\\\n", " "))
    return [
        found[0]
        for found in _INSTALL.finditer(text)
        if "--from" not in found[1]
        and any(_BARE.fullmatch(word.strip("'\",()")) for word in found[1].split())
    ]


def locked_by_name(text: str) -> list[str]:
    """Return the lines of a file of requirements, or of a lock, that name one of ours."""
    return [line for line in text.splitlines() if _LOCKED.fullmatch(line.strip())]


def texts() -> Iterator[Path]:
    yield from (path for path in ROOT.iterdir() if path.is_file() and path.suffix in _TEXTS)
    for folder in _FOLDERS:
        yield from (
            path
            for path in (ROOT / folder).rglob("*")
            if path.is_file() and path.suffix in _TEXTS and "__pycache__" not in path.parts
        )


@for_each(
    [
        "pip install ultrascale",
        "RUN python3 -m pip install --no-cache-dir torch 'ultrascale-training[s3]'",
        "pip install 'ultrascale[tested]==0.1.0'",
        "pip install \\\n    ultrascale>=0.1",
        "run `uv tool install ultrascale`",
        "uvx ultrascale init",
        'f"{_PIP} \\"{PRODUCT}[tested]==$place\\""',
    ]
)
def test_an_installation_by_name_is_seen(text: str) -> None:
    assert by_name(text.replace('\\"', '"'))


@for_each(
    [
        "pip install ultrascale-*.whl",
        "pip install './ultrascale-0.1.0-py3-none-any.whl[tested]'",
        "pip install -r requirements.txt && ultrascale check",
        "pip install 'torchtitan==0.3.0' ./training",
        "pip install 'ultrascale[tested] @ git+https://example.com/us@0a'",
    ]
)
def test_an_installation_of_a_file_is_none(text: str) -> None:
    assert not by_name(text.replace("'ultrascale[tested] @ ", "'"))


def test_no_page_program_or_image_installs_ours_by_name() -> None:
    paths = [*texts()]
    assert len(paths) > 1000
    assert {ROOT / "README.md", ROOT / "Makefile", ROOT / "images/nvidia/Dockerfile"} <= {*paths}
    assert {
        path.relative_to(ROOT).as_posix(): found
        for path in paths
        if (found := by_name(path.read_text(encoding="utf-8", errors="replace")))
    } == {}


def test_no_file_of_requirements_names_ours() -> None:
    names = ("requirements*.txt", "constraints*.txt", "pylock*.toml")
    paths = [path for name in names for path in (*ROOT.glob(name), *ROOT.glob(f"*/**/{name}"))]
    paths = [path for path in paths if not {".venv", ".make", "node_modules"} & {*path.parts}]
    assert len(paths) > 12
    assert {str(path): found for path in paths if (found := locked_by_name(path.read_text()))} == {}


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("place", [None, _COMMIT, "wheel"])
def test_no_repository_that_is_begun_installs_ours_by_name(
    start: str, place: str | None, tmp_path: Path
) -> None:
    if place == "wheel":
        wheel = tmp_path / "ultrascale-0.4.0-py3-none-any.whl"
        wheel.write_bytes(b"")
        place = str(wheel)
    folder = tmp_path / "new"
    source = place and given_source(place, folder)

    init(STARTS[start], defaults(STARTS[start], "my-cluster"), folder, source or None)

    written = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".whl"]
    requirements = folder / "requirements.txt"
    assert requirements.exists() == (place is not None)
    assert not [found for path in written for found in by_name(path.read_text())]
    assert not (requirements.exists() and locked_by_name(requirements.read_text()))


@pytest.mark.parametrize(
    "package", [WHEEL, f"https://example.com/{WHEEL.rsplit('/', 1)[1]}#sha256={'0' * 64}"]
)
def test_no_build_of_a_pipeline_installs_ours_by_name(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = load_pipeline(two_accounts(tmp_path, package=package))

    assert plan is not None
    builds = plan.builds
    commands = [
        *builds.synth,
        *builds.rules,
        *(one for look in builds.looks.values() for one in look),
    ]
    assert any("install_package" in command for command in commands)
    assert not [found for command in commands for found in by_name(command)]
