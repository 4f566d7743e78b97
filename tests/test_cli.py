"""The command line, as its user sees it."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.assembly import ROOT
from tests.command_line import run

TRAINIUM = ROOT / "clusters" / "trainium-bert.yaml"


def ultrascale(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ultrascale.cli", *(str(a) for a in arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_good_file_passes_with_one_line() -> None:
    answer = ultrascale("check", TRAINIUM)

    assert (answer.returncode, answer.stdout) == (0, f"{TRAINIUM}: ok\n")
    assert answer.stderr == ""


def test_every_mistake_is_named_at_once_without_a_traceback(tmp_path: Path) -> None:
    document = yaml.safe_load(TRAINIUM.read_text())
    document["pools"][1]["instance_types"] = ["trn1.33xlarge"]
    document["storage"]["lustre"][0]["capacity_gib"] = 1300
    document["netwrok"] = document.pop("network")
    file = tmp_path / "bad.yaml"
    file.write_text(yaml.safe_dump(document))

    answer = ultrascale("check", file)

    assert answer.returncode == 1
    assert answer.stdout == ""
    lines = answer.stderr.splitlines()
    assert all(line.startswith(f"{file}: ") for line in lines)
    for part in ("trn1.32xlarge", "1300", "did you mean network"):
        assert any(part in line for line in lines), part


def test_what_is_not_built_yet_is_refused_in_plain_words(tmp_path: Path) -> None:
    document = yaml.safe_load(TRAINIUM.read_text())
    document["storage"]["lustre"][0]["efa"] = True
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump(document))

    answer = ultrascale("check", file)

    assert answer.returncode == 1
    lines = answer.stderr.splitlines()
    assert lines
    assert all(line.startswith(f"{file}: ") and "not supported yet" in line for line in lines)


def test_a_file_without_administrators_passes_with_a_warning(tmp_path: Path) -> None:
    document = yaml.safe_load(TRAINIUM.read_text())
    del document["kubernetes"]["admins"]
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump(document))

    answer = ultrascale("check", file)

    assert answer.returncode == 0
    assert "warning" in answer.stderr
    assert "kubectl" in answer.stderr


def test_a_pool_that_loses_its_efa_passes_with_a_warning(tmp_path: Path) -> None:
    document = yaml.safe_load(TRAINIUM.read_text())
    pool = document["pools"][1]
    pool["zones"] = document["network"]["zones"]
    del pool["placement_group"]
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump(document))

    answer = ultrascale("check", file)

    assert answer.stderr == (
        f"{file}: warning: pools.1.efa: no EFA across several zones; "
        "keep one zone, or write efa: none\n"
    )
    assert answer.returncode == 0


def test_a_range_that_is_too_small_is_named_beside_a_misspelt_type(tmp_path: Path) -> None:
    document = yaml.safe_load(TRAINIUM.read_text())
    document["network"]["vpc_cidr"] = "10.0.0.0/24"
    document["pools"][1]["instance_types"] = ["trn1.33xlarge"]
    document["storage"]["lustre"][0]["capacity_gib"] = 1300
    file = tmp_path / "bad.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False))

    answer = ultrascale("check", file)

    keys = [line.split(": ")[1] for line in answer.stderr.splitlines()]
    assert keys == [
        "network.vpc_cidr",
        "pools.1.instance_types.0",
        "storage.lustre.0.capacity_gib",
    ]


def test_no_file_at_all_is_asked_for_in_plain_words() -> None:
    answer = ultrascale("check", "")

    assert (answer.returncode, answer.stderr) == (1, ".: no file is named; name a cluster file\n")


def test_synthesis_refuses_a_bad_file_before_it_writes_anything(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("name: [")
    program = "import sys; sys.path[:0] = sys.argv[1:3]; import app; app.main()"
    context = f'{{"cluster": "{file}"}}'

    answer = subprocess.run(
        [sys.executable, "-c", program, str(ROOT), str(ROOT / "constructs")],
        cwd=tmp_path,
        env={"CDK_CONTEXT_JSON": context, "CDK_OUTDIR": str(tmp_path / "out"), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )

    assert answer.returncode == 1
    assert answer.stderr.startswith(f"{file}: ")
    assert "Traceback" not in answer.stderr
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [file]


def test_the_summary_of_nothing_says_what_to_run(tmp_path: Path) -> None:
    answer = ultrascale("summary", TRAINIUM, "--assembly", tmp_path)

    assert answer.returncode == 1
    assert "make synth" in answer.stderr


def test_a_template_that_no_job_could_be_made_of_fails_the_check(tmp_path: Path) -> None:
    document = yaml.safe_load((ROOT / "clusters" / "hybrid-hyperpod.yaml").read_text())
    document["jobs"]["production"]["nodes"] = 6
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump(document))

    answer = ultrascale("check", file)

    assert answer.returncode == 1
    assert answer.stderr.startswith(f"{file}: jobs.production.nodes: more than team production")


@pytest.mark.parametrize(
    "arguments",
    [("check",), ("plan", "FILE", "--nodez"), ("advise", "--nodes", "many"), ("nothing",)],
    ids=["no file", "no such option", "no number", "no such command"],
)
def test_a_wrong_use_is_no_cluster_beyond_the_limits(
    arguments: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer = run(*arguments, monkeypatch=monkeypatch, capsys=capsys)

    assert answer.returncode == 1
    assert "Usage" in answer.stderr
