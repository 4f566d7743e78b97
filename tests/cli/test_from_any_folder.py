"""Every command from a folder of the user's: with the cluster file elsewhere, and no checkout."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.support.assembly import Assembly
from tests.support.command_line import Ultrascale
from tests.support.deployments import install_cdk
from tests.support.folders import ROOT
from ultrascale import cli, synthesis

_NO_CREDENTIALS = "no AWS credentials"
_NO_CLUSTER = "no cluster is known"
_REGION = "us-west-2"

# What each is asked behind `ultrascale`, its status, and words of its answer. SAVED is what was
# synthesized of the file earlier, elsewhere as well.
WALK: Mapping[str, tuple[Sequence[str], int, str]] = {
    "init": (("mine", "--yes"), 0, "next: ultrascale check mine.yaml"),
    "check": (("FILE",), 0, ": ok"),
    "schema": ((), 0, '"agreed_limits"'),
    "plan": (("FILE",), 0, "trainium-bert"),
    "network": (("needs", "FILE"), 0, "Subnets"),
    "report": (("FILE", "-o", "report.html"), 0, ""),
    "prices": ((_REGION,), 1, _NO_CREDENTIALS),
    "facts": (("FILE",), 3, "facts have expired"),
    "ledger": (("FILE", "--setup"), 0, "TIME_GRANULARITY"),
    "matrix": ((), 0, "karpenter"),
    "types": (("p5",), 0, "p5.48xlarge"),
    "recipes": ((), 0, "llama3-8b"),
    "models": (("FILE",), 64, "no bucket of the file has a claim"),
    "advise": (("--workload", "pre-training", "--type", "p5.48xlarge"), 64, "--nodes: missing"),
    "baseline": (
        ("jobs.csv", "--type", "p5.48xlarge", "--region", _REGION, "--block-price", "31"),
        1,
        "jobs.csv:1:1: it cannot be read",
    ),
    "preflight": (("FILE",), 1, _NO_CREDENTIALS),
    "capacity": (("find", "FILE", "--days", "7"), 1, _NO_CREDENTIALS),
    "bootstrap-policy": (("FILE", "--assembly", "SAVED/cdk.out"), 1, "states no account"),
    "synth": (("FILE",), 1, "the app runs in EMPTY"),
    "mirror": (
        ("FILE", "list", "--assembly", "SAVED/cdk.out", "--manifests", "SAVED/dist"),
        1,
        "images.mirror: missing",
    ),
    "diff": (("FILE", "--against", "SAVED", "--assembly", "SAVED"), 0, "against"),
    "deploy": (("FILE", "--yes"), 1, _NO_CREDENTIALS),
    "summary": (
        ("FILE", "--assembly", "SAVED/cdk.out", "--manifests", "SAVED/dist"),
        0,
        "manifests in SAVED/dist/",
    ),
    "sbom": (("FILE", "--assembly", "SAVED/cdk.out", "--manifests", "SAVED/dist"), 0, "bom"),
    "submit": (("FILE", "JOB", "--dry-run", "--account", "918273645546"), 0, "kind:"),
    "accept": (("FILE",), 1, _NO_CLUSTER),
    "status": (("FILE",), 1, _NO_CLUSTER),
    "logs": (("train",), 1, _NO_CLUSTER),
    "cancel": (("train", "--yes"), 1, _NO_CLUSTER),
    "dev": (("FILE", "notebook"), 1, _NO_CLUSTER),
    "queue": ((), 1, _NO_CLUSTER),
    "fabric": (("FILE", "trn1", "--dry-run"), 0, "check-trn1-fabric"),
    "connect": (("FILE",), 1, "session-manager-plugin: not installed"),
    "scale": (("FILE", "trn1", "2", "--yes"), 1, _NO_CREDENTIALS),
    "roll": (("FILE", "trn1", "--yes"), 1, "trn1"),
    "repair": (("FILE", "a", "--hold"), 1, ""),
    "upgrade-plan": (
        ("FILE", "--to", "1.36", "--assembly", "SAVED/cdk.out", "--manifests", "SAVED/dist"),
        3,
        "blockers",
    ),
    "destroy": (("FILE", "--dry-run"), 1, _NO_CREDENTIALS),
    "cdk": (("list", "--json"), 0, ""),
    "app": ((), 0, ""),
}


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, of a user without credentials, a kubeconfig or a program."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "KUBE", "ULTRASCALE_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    cdk = install_cdk(tmp_path / "global", "#!/bin/sh\n")
    monkeypatch.setenv("ULTRASCALE_CDK", str(cdk))
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A cluster file beside its jobs, with values that a user would have, by a relative path."""
    for path in ("clusters/trainium-bert.yaml", "jobs/bert-pretrain.yaml"):
        copy = tmp_path / "elsewhere" / path
        copy.parent.mkdir(parents=True)
        text = (ROOT / path).read_text(encoding="utf-8")
        text = text.replace("203.0.113.0/24", "198.51.99.0/24")
        copy.write_text(text.replace("111122223333", "918273645546"), encoding="utf-8")
    return Path("..", "elsewhere", "clusters", "trainium-bert.yaml")


@pytest.mark.parametrize("name", WALK)
def test_a_command_reads_and_writes_where_its_user_is(
    name: str,
    ultrascale: Ultrascale,
    empty: Path,
    file: Path,
    trainium: Assembly,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given, status, told = WALK[name]
    stands = {
        "FILE": str(file),
        "JOB": str(file.parents[1] / "jobs" / "bert-pretrain.yaml"),
        "SAVED": str(trainium.folder),
        "EMPTY": str(empty),
    }
    words = [*given]
    for key, value in stands.items():
        words = [word.replace(key, value) for word in words]
        told = told.replace(key, value)
    said = "import os, sys; sys.exit(f'the app runs in {os.getcwd()}')"
    monkeypatch.setattr(synthesis, "APP", ("-P", "-c", said))
    became: list[list[str]] = []

    def become(_: str, command: list[str], *__: object) -> None:
        became.append(command)
        raise SystemExit(0)

    monkeypatch.setattr(os, "execv", become)
    monkeypatch.setattr(os, "execve", become)

    answer = ultrascale(name, *words)

    text = answer.stdout + answer.stderr
    assert (answer.returncode, told in text) == (status, True), text[-2000:]
    assert str(ROOT) not in text
    assert bool(became) == (name in ("cdk", "app"))
    if name == "cdk":
        assert became[0][-2:] == ["list", "--json"]
    if name == "app":
        assert became[0] == [sys.executable, *synthesis.APP]


def test_the_walk_passes_every_command() -> None:
    assert {*WALK} == {*cli.COMMANDS}
