"""`ultrascale hosts`: hosts of a closed network, told with their places."""

import json
import shutil
from pathlib import Path

import pytest

from tests.support.assembly import Assembly
from tests.support.command_line import Ultrascale
from tests.support.folders import ROOT

ESTATE = str(ROOT / "clusters" / "existing-estate.yaml")


@pytest.fixture
def manifests(estate: Assembly, tmp_path: Path) -> Path:
    """Return a copy of the manifests, for tests to change."""
    return shutil.copytree(estate.folder / "dist", tmp_path / "dist")


@pytest.fixture
def templates(estate: Assembly, tmp_path: Path) -> Path:
    """Return a copy of one template and of the list of all, which are read within a second."""
    folder = tmp_path / "cdk.out"
    folder.mkdir()
    for name in ("manifest.json", "estate-images.template.json"):
        shutil.copy(estate.folder / "cdk.out" / name, folder / name)
    return folder


def test_a_closed_network_without_a_stray_host_is_well(
    ultrascale: Ultrascale, templates: Path, manifests: Path
) -> None:
    answer = ultrascale(
        "hosts", ESTATE, "--assembly", str(templates), "--manifests", str(manifests)
    )

    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout.endswith(" 0 of them without a way that the file states\n")


def test_a_stray_host_is_shown_with_its_file_and_place(
    ultrascale: Ultrascale, templates: Path, manifests: Path
) -> None:
    (manifests / "9999-stray.k8s.yaml").write_text(
        "kind: ConfigMap\ndata: {run.sh: 'echo Y3VybCBodHRwczovL3N0cmF5LmV4YW1wbGUuY29t'}\n"
    )
    call = ("hosts", ESTATE, "--assembly", str(templates), "--manifests", str(manifests))

    answer = ultrascale(*call)
    (found,) = json.loads(ultrascale(*call, "--json").stdout)

    assert answer.returncode == 1
    assert "stray.example.com" in answer.stdout
    assert (found["use"]["file"], found["use"]["place"]) == ("9999-stray.k8s.yaml", "data.run.sh")
    assert found["use"]["through"] == ["base64"]


def test_all_hosts_are_shown_with_the_reason(
    ultrascale: Ultrascale, templates: Path, manifests: Path
) -> None:
    call = ("hosts", ESTATE, "--assembly", str(templates), "--manifests", str(manifests))

    answer = ultrascale(*call, "--all", "--json")

    ways = {(found["use"]["host"], found["way"]) for found in json.loads(answer.stdout)}
    assert ("602401143452.dkr.ecr.us-east-1.amazonaws.com", "endpoint") in ways
    assert ("111122223333.dkr.ecr.us-east-1.amazonaws.com", "mirror") in ways


def test_an_assembly_of_another_file_is_refused(
    ultrascale: Ultrascale, templates: Path, manifests: Path
) -> None:
    answer = ultrascale(
        "hosts",
        str(ROOT / "clusters" / "trainium-bert.yaml"),
        *("--assembly", str(templates), "--manifests", str(manifests)),
    )

    assert answer.returncode == 1
    assert "not what the file of trainium-bert becomes now" in answer.stderr


def test_a_job_that_a_submission_completes_is_read_as_far_as_it_is_stated(
    ultrascale: Ultrascale, tmp_path: Path, templates: Path, manifests: Path
) -> None:
    stated = Path(ESTATE).read_text()
    left_open = "  open: {pool: hopper, nodes: 1, env: {SINK: https://stray.example.com}}"
    (tmp_path / "estate.yaml").write_text(f"{stated.rstrip()}\n{left_open}\n")
    folders = ("--assembly", str(templates), "--manifests", str(manifests))

    answer = ultrascale("hosts", str(tmp_path / "estate.yaml"), *folders, "--json")

    assert answer.returncode == 1
    assert [found["use"]["file"] for found in json.loads(answer.stdout)] == ["job open"]
