"""`ultrascale accept --output` and `--verify`, as their user sees them."""

import json
import shutil
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.support.assembly import Assembly
from tests.support.command_line import Ultrascale
from tests.support.folders import ROOT
from tests.support.stub_api_http import kubeconfig
from tests.support.stub_api_server import StubApiServer
from ultrascale import guard
from ultrascale.cli import ask

FILE = ROOT / "clusters" / "trainium-bert.yaml"


@pytest.fixture(autouse=True)
def synthesized(trainium: Assembly, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take what another test synthesized of the same file."""

    def synthesize(_: Path, folder: Path) -> dict[str, str]:
        for name in ("cdk.out", "dist"):
            shutil.copytree(trainium.folder / name, folder / name)
        return {}

    monkeypatch.setattr(guard, "synthesize", synthesize)
    # No account is asked.
    monkeypatch.setattr(ask, "owner", Mock(return_value=None))


def test_evidence_is_written_after_a_run_and_verified_later(
    stub: StubApiServer, ultrascale: Ultrascale, tmp_path: Path
) -> None:
    evidence = tmp_path / "evidence"
    config = kubeconfig(tmp_path, stub.url)
    ran = ultrascale("accept", FILE, "--kubeconfig", config, "--output", evidence)
    assert ran.returncode in (0, 3), ran.stderr
    assert f"wrote {evidence}" in ran.stderr

    verified = ultrascale("accept", FILE, "--verify", evidence)
    assert (verified.returncode, "as it was written" in verified.stdout) == (0, True)

    (evidence / "note.txt").touch()
    refused = ultrascale("accept", FILE, "--verify", evidence)
    assert refused.returncode == 3
    assert "note.txt" in refused.stderr
    (evidence / "note.txt").unlink()
    summary = json.loads((evidence / "summary.json").read_bytes())
    assert summary["versions"]["server"]
    other = tmp_path / "other.yaml"
    other.write_text(f"{FILE.read_text()}# more\n")
    refused = ultrascale("accept", other, "--verify", evidence)
    assert refused.returncode == 3
    assert "the cluster file of today is another" in refused.stderr


def test_a_folder_with_files_is_refused_before_anything_is_asked(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    (tmp_path / "mine").touch()
    answer = ultrascale("accept", FILE, "--output", tmp_path, "--kubeconfig", tmp_path / "none")
    assert answer.returncode == 1
    assert "--output" in answer.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_folder_without_evidence_is_told(ultrascale: Ultrascale, tmp_path: Path) -> None:
    answer = ultrascale("accept", FILE, "--verify", tmp_path)
    assert (answer.returncode, "no bundle" in answer.stderr) == (3, True)
