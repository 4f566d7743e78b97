"""The command line, as its user sees it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.command_line import Ultrascale
from tests.support.folders import ROOT
from tests.support.pools import as_text
from ultrascale_stacks import app

TRAINIUM = ROOT / "clusters" / "trainium-bert.yaml"
HYBRID = ROOT / "clusters" / "hybrid-hyperpod.yaml"


def read(file: Path) -> Any:
    return yaml.load(file.read_text(), yaml.CSafeLoader)


def test_a_good_file_passes_with_one_line() -> None:
    command = [sys.executable, "-m", "ultrascale", "check", str(TRAINIUM)]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.returncode == 0
    assert answer.stdout.startswith(f"{TRAINIUM}: ok, but 2 values are of documentation")
    # Facts expire by the day on which this runs.
    lines = [line for line in answer.stderr.splitlines(keepends=True) if "expired on" not in line]
    assert "".join(lines) == (
        f"{TRAINIUM}: note: EKS's standard support of Kubernetes 1.35 ends on 2027-03-27; from "
        "then on the cluster costs USD 0.50 an hour more, until it is upgraded\n"
    )


def test_every_mistake_is_named_at_once_without_a_traceback(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    document = read(TRAINIUM)
    document["network"]["vpc_cidr"] = "10.0.0.0/24"
    document["pools"][1]["instance_types"] = ["trn1.33xlarge"]
    document["storage"]["lustre"][0]["capacity_gib"] = 1300
    document["regoin"] = "us-west-2"
    file = tmp_path / "bad.yaml"
    file.write_text(as_text(document))

    answer = ultrascale("check", file)

    assert (answer.returncode, answer.stdout) == (1, "")
    lines = answer.stderr.splitlines()
    assert all(line.startswith(f"{file}:") for line in lines)
    assert {line.split(": ")[1] for line in lines} == {
        *("network.vpc_cidr", "pools[trn1].instance_types[0]", "regoin"),
        "storage.lustre[training].capacity_gib",
    }


def test_a_file_that_costs_more_than_it_need_passes_with_a_warning(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    document = read(TRAINIUM)
    pool = document["pools"][1]
    pool["zones"] = document["network"]["zones"]
    pool["instance_types"] = ["g6e.12xlarge"]
    del pool["placement_group"], document["kubernetes"]["admins"]
    file = tmp_path / "cluster.yaml"
    file.write_text(as_text(document))

    answer = ultrascale("check", file)

    assert (
        "warning: pools[trn1].efa: no EFA across several zones; keep one zone, or write efa: none\n"
    ) in answer.stderr
    assert any("warning" in line and "kubectl" in line for line in answer.stderr.splitlines())
    assert answer.returncode == 0


def test_synthesis_refuses_a_bad_file_before_it_writes_anything(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("name: [")
    monkeypatch.setenv("CDK_CONTEXT_JSON", json.dumps({"cluster": str(file)}))
    monkeypatch.setenv("CDK_OUTDIR", str(tmp_path / "out"))
    monkeypatch.chdir(tmp_path)

    with pytest.raises(SystemExit) as refused:
        app.main()

    assert str(refused.value.code).startswith(f"{file}:1:8: ")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [file]


def test_a_template_that_no_job_could_be_made_of_fails_the_check(
    ultrascale: Ultrascale, tmp_path: Path
) -> None:
    document = read(HYBRID)
    document["jobs"]["production"]["nodes"] = 6
    file = tmp_path / "cluster.yaml"
    file.write_text(as_text(document))

    answer = ultrascale("check", file)

    assert answer.returncode == 1
    assert answer.stderr.startswith(
        f"{file}:116:5: jobs.production.nodes: more than team production"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("check",),
        ("plan", "FILE", "--nodez"),
        ("advise", "--nodes", "many"),
        ("nothing",),
        ("plan", TRAINIUM, "--json", "--markdown"),
        ("plan", TRAINIUM, "--at", "tomorrow"),
        ("preflight", TRAINIUM, "--json", "--policy"),
        ("report", TRAINIUM, "--assembly", "cdk.out"),
        ("check", TRAINIUM, "--json", "--format", "github"),
        ("network", "needs", TRAINIUM, "--json", "--markdown"),
        ("submit", TRAINIUM, "bert", "--timeout", "-1"),
        ("logs", "bert", "--tail", "-1"),
        ("advise", "--nodes", "0"),
    ],
    ids=str,
)
def test_a_wrong_use_is_told_from_a_wrong_file_and_a_cluster_beyond_the_limits(
    arguments: tuple[str, ...], ultrascale: Ultrascale
) -> None:
    answer = ultrascale(*arguments)
    assert (answer.returncode, answer.stdout) == (64, "")
    assert "Usage" in answer.stderr or answer.stderr.startswith("--")


def test_no_file_at_all_is_asked_for_in_plain_words(ultrascale: Ultrascale) -> None:
    answer = ultrascale("check", "")
    assert (answer.returncode, answer.stderr) == (1, ".: no file is named; name a cluster file\n")


def test_the_summary_of_nothing_says_what_to_run(ultrascale: Ultrascale, tmp_path: Path) -> None:
    answer = ultrascale("summary", TRAINIUM, "--assembly", tmp_path)
    assert answer.returncode == 1
    assert "ultrascale synth" in answer.stderr
