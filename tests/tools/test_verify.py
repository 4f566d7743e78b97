"""The long checks run where what they are about has changed, and all of them where nobody knows."""

import subprocess
from pathlib import Path

import pytest

from tests.support.folders import ROOT
from tools import verify
from tools.verify import CHECKS, Check

CHECK = Check("touch ran", ("about",), shorter="touch ran-short")


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of one commit, with a check."""
    monkeypatch.setattr(verify, "ROOT", tmp_path)
    monkeypatch.setattr(verify, "VERIFIED", tmp_path / "verified.toml")
    monkeypatch.setattr(verify, "CHECKS", {"check": CHECK})
    (tmp_path / "about").mkdir()
    (tmp_path / "about" / "file").write_text("1")
    (tmp_path / ".gitignore").write_text("ran*\nverified.toml\n")
    git("init", "--quiet")
    commit()
    return tmp_path


def git(*arguments: str) -> None:
    author = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", *author, *arguments], cwd=verify.ROOT, check=True, capture_output=True)


def commit() -> None:
    git("add", "--all")
    git("commit", "--quiet", "--allow-empty", "--message", "one")


def called(monkeypatch: pytest.MonkeyPatch, *options: str) -> set[str]:
    """Run the program; return the files that its checks made."""
    monkeypatch.setattr("sys.argv", ["verify", *options])
    verify.main()
    made = {file.name for file in verify.ROOT.glob("ran*")}
    for name in made:
        (verify.ROOT / name).unlink()
    return made


def test_a_check_that_passed_runs_again_only_after_its_files_changed(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(monkeypatch, "--changed") == {"ran"}
    assert "no commit at which it passed is known" in capsys.readouterr().out
    assert called(monkeypatch) == {"ran"}

    assert called(monkeypatch, "--changed") == set()
    assert "check: not run: none of its files has changed" in capsys.readouterr().out

    (repository / "beside").write_text("1")
    commit()
    assert called(monkeypatch, "--changed") == set()

    (repository / "about" / "file").write_text("not committed")
    assert called(monkeypatch, "--changed") == {"ran-short"}
    commit()
    assert called(monkeypatch, "--changed") == {"ran-short"}
    assert "about/file" in capsys.readouterr().out


def test_a_check_that_passed_long_ago_runs_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "_FAR", 2)
    called(monkeypatch)
    commit()
    assert called(monkeypatch, "--changed") == set()

    commit()
    assert called(monkeypatch, "--changed") == {"ran"}


def test_a_commit_that_a_shallow_clone_lacks_counts_as_never(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    verify.VERIFIED.write_text(f'check = "{"0" * 40}"\n')

    assert called(monkeypatch, "--changed") == {"ran"}


def test_what_fails_or_cannot_be_installed_or_is_not_committed_is_not_recorded(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(verify.CHECKS, "check", Check("false", ("about",)))
    with pytest.raises(subprocess.CalledProcessError):
        called(monkeypatch)
    missing = Check("touch ran", ("about",), install="false")
    monkeypatch.setitem(verify.CHECKS, "check", missing)
    assert called(monkeypatch) == set()
    assert "check: NOT RUN: `false` failed here" in capsys.readouterr().out
    monkeypatch.setitem(verify.CHECKS, "check", CHECK)
    (repository / "about" / "file").write_text("not committed")
    assert called(monkeypatch) == {"ran"}

    commit()
    assert called(monkeypatch, "--changed") == {"ran"}


def test_no_check_is_about_a_file_that_was_renamed() -> None:
    assert [
        file for check in CHECKS.values() for file in check.files if not (ROOT / file).exists()
    ] == []
