"""`make synth` and `make pipeline`: what is there stays until there is something to replace it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.deployments import make_project
from tests.support.folders import ROOT

# It writes where the options say, as the CDK's command line does.
_CDK = """#!/bin/sh
while [ $# -gt 0 ]; do
    case "$1" in
        manifests=*) dist=${1#manifests=} ;;
        --output) output=$2 ;;
    esac
    shift
done
mkdir -p "$dist"
echo half > "$output/manifest.json"
echo "Successfully synthesized to $output"
echo "Supply a stack id (a, b) to display its template."
echo "check: $CDK_DISABLE_VERSION_CHECK"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project in which something was synthesized before."""
    make_project(tmp_path)
    for name in ("cdk.out", "dist"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "old").touch()
    (tmp_path / "cdk.out" / "asset.1.zip").write_text("60 MB")
    return tmp_path


def synth(project: Path, *, then: str) -> subprocess.CompletedProcess[str]:
    (project / "node_modules" / ".bin" / "cdk").write_text(_CDK + then)
    return subprocess.run(
        [sys.executable, ROOT / "tools" / "synth.py", "cluster", "a.yaml"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("then", ["exit 1", "kill -INT $$"], ids=["refused", "Ctrl-C"])
def test_a_synthesis_that_fails_leaves_what_one_wanted_to_compare_with(
    project: Path, then: str
) -> None:
    answer = synth(project, then=then)

    assert answer.returncode != 0
    assert {file.name for file in (project / "cdk.out").iterdir()} == {"old", "asset.1.zip"}
    assert {file.name for file in (project / "dist").iterdir()} == {"old"}


def test_a_synthesis_replaces_all_of_the_last_one_and_copies_no_asset_again(project: Path) -> None:
    asset = (project / "cdk.out" / "asset.1.zip").stat().st_ino

    answer = synth(project, then="")

    assert answer.returncode == 0, answer.stderr
    assert {file.name for file in (project / "cdk.out").iterdir()} == {
        "manifest.json",
        "asset.1.zip",
    }
    assert (project / "cdk.out" / "asset.1.zip").stat().st_ino == asset
    assert not (project / "dist" / "old").exists()


def test_it_prints_nothing_of_the_cdk_that_misleads(project: Path) -> None:
    """The CDK recommends npm's tag `latest` on a terminal, which is broken."""
    assert synth(project, then="").stdout == "check: 1\n"
