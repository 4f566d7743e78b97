"""The one line that tells where libraries are not those that the release was tested with."""

from pathlib import Path

import pytest

from ultrascale.cli import version
from ultrascale.release import VERSION


def lock(monkeypatch: pytest.MonkeyPatch, folder: Path, *lines: str) -> None:
    (folder / "lock").write_text("\n".join(["# a comment", *lines, "-e ."]))

    def found(_: str) -> Path:
        return folder / "lock"

    monkeypatch.setattr(version, "resource", found)


def test_the_checkout_runs_what_it_is_tested_with() -> None:
    assert version.untested() is None


def test_another_version_is_named_beside_the_tested_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock(monkeypatch, tmp_path, "PyYAML==1.2.3", "absent==1")

    told = version.untested()

    assert told is not None
    assert "PyYAML 6." in told
    assert " for 1.2.3; " in told
    assert told.endswith(f"pip install './ultrascale-{VERSION}-py3-none-any.whl[tested]'")


def test_a_line_names_three_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("PyYAML", "rich", "typer", "boto3", "pydantic")
    lock(monkeypatch, tmp_path, *(f"{name}==0.0.1" for name in names))

    told = version.untested()

    assert told is not None
    assert ", and 2 more; " in told
