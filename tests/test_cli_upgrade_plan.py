"""`ultrascale upgrade-plan`, as its user sees it."""

import json
from functools import partial
from pathlib import Path

import pytest

from tests.command_line import Ultrascale, run
from tests.pools import as_text, make_document
from ultrascale.plan import names


@pytest.fixture
def ultrascale(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ultrascale:
    return partial(run, monkeypatch=monkeypatch, capsys=capsys)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cluster file, beside what it was synthesized to."""
    monkeypatch.chdir(tmp_path)
    synthesized("research")
    write("- {}")
    path = tmp_path / "cluster.yaml"
    path.write_text(as_text(make_document()))
    return path


def synthesized(name: str) -> None:
    Path("cdk.out").mkdir(exist_ok=True)
    Path("cdk.out/manifest.json").write_text("{}")
    template = {"Description": names.stack_description(name)}
    Path("cdk.out/research-network.template.json").write_text(json.dumps(template))


def write(text: str) -> None:
    Path("dist").mkdir(exist_ok=True)
    Path("dist/platform.k8s.yaml").write_text(text)


def test_the_steps_of_an_upgrade_come_in_their_order(ultrascale: Ultrascale, file: Path) -> None:
    answer = ultrascale("upgrade-plan", file, "--to", "1.36")

    steps = [line.strip() for line in answer.stdout.splitlines() if line.startswith("  1.")]
    assert answer.returncode == 0
    assert steps == [f'1. write `version: "1.36"` under `kubernetes` in {file}']
    assert f"between its jobs: ultrascale scale {file} train 0" in answer.stdout
    assert "1.35: in standard support to 2027-03-27" in answer.stdout


def test_a_blocker_ends_with_a_status_of_its_own_and_no_steps(
    ultrascale: Ultrascale, file: Path
) -> None:
    write("apiVersion: storage.k8s.io/v1alpha1\nkind: VolumeAttributesClass\nmetadata: {name: x}")

    answer = ultrascale("upgrade-plan", file, "--to", "1.36")

    assert answer.returncode == 3
    assert "dist/platform.k8s.yaml: VolumeAttributesClass x: storage" in answer.stdout
    assert "in this order" not in answer.stdout


def test_programs_read_it_as_json(ultrascale: Ultrascale, file: Path) -> None:
    found = json.loads(ultrascale("upgrade-plan", file, "--to", "1.36", "--json").stdout)

    assert found["support_ends"]["1.36"] == "2027-08-02"
    assert [each["pool"] for each in found["pools"]] == ["system", "train"]


def test_manifests_of_another_cluster_file_are_not_taken_for_this_ones(
    ultrascale: Ultrascale, file: Path
) -> None:
    # Of its stacks one may be called as one of this file's.
    synthesized("other")

    answer = ultrascale("upgrade-plan", file, "--to", "1.36")

    assert answer.returncode == 1
    assert "cdk.out: synthesized from another cluster file" in answer.stderr


@pytest.mark.parametrize("gone", ["cdk.out/manifest.json", "dist/platform.k8s.yaml"])
def test_nothing_is_said_of_what_is_not_synthesized(
    ultrascale: Ultrascale, file: Path, gone: str
) -> None:
    Path(gone).unlink()

    answer = ultrascale("upgrade-plan", file, "--to", "1.36")

    assert answer.returncode == 1
    assert "make synth" in answer.stderr
