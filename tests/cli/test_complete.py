"""Completions that a shell receives at the tab key."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import forked_commands
from tests.support.command_line import Ultrascale
from tests.support.folders import ROOT

HYBRID = "clusters/hybrid-hyperpod.yaml"
POOLS = ["system", "hyperpod", "eks-on-demand", "eks-spot"]
JOBS = ["production", "development", "research", "elastic"]
_PROGRAM = """
import sys
from ultrascale.__main__ import run
try:
    run()
finally:
    print(*sys.modules, file=sys.stderr)
"""
_HEAVY = {"aws_cdk", "boto3", "cdk8s", "jsii", "kubernetes", "ultrascale.config", "ultrascale.plan"}


def completed(words: str, *, cwd: Path = ROOT) -> tuple[list[str], set[str]]:
    """Return what bash is offered after ``words``, and the modules that were loaded for it."""
    answer = forked_commands.run(
        program=_PROGRAM,
        folder=cwd,
        environment={
            **os.environ,
            "_ULTRASCALE_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - (not words.endswith(" "))),
        },
        imported=forked_commands.COMPLETION,
    )
    assert answer.returncode == 0, answer.stderr
    assert "Traceback" not in answer.stderr
    return answer.stdout.split(), set(answer.stderr.split())


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("ultrascale pref", ["preflight"]),
        (f"ultrascale scale {HYBRID} ", POOLS),
        (f"ultrascale scale {HYBRID} eks-s", ["eks-spot"]),
        (f"ultrascale roll {HYBRID} ", POOLS),
        (f"ultrascale submit {HYBRID} ", JOBS),
        (f"ultrascale submit {HYBRID} dev", ["development"]),
        (f"ultrascale submit {HYBRID} production --pool eks", ["eks-on-demand", "eks-spot"]),
        (f"ultrascale status {HYBRID} ", JOBS),
        ("ultrascale dev clusters/llm-kueue.yaml ", ["notebook"]),
        (f"ultrascale fabric {HYBRID} ", POOLS),
        (f"ultrascale capacity {HYBRID} ", POOLS),
        ("ultrascale capacity ", ["find", "buy"]),
        ("ultrascale capacity --reg", ["--region"]),
        ("ultrascale init --region us-west-", ["us-west-1", "us-west-2"]),
        ("ultrascale capacity --region us-west-", ["us-west-1", "us-west-2"]),
        ("ultrascale capacity --type trn1.", ["trn1.2xlarge", "trn1.32xlarge"]),
        (f"ultrascale plan {HYBRID} qu", ["quotas"]),
        ("ultrascale deploy --dry", ["--dry-run"]),
        ("ultrascale types trn", ["trn1", "trn1n", "trn2", "trn2u", "trn3"]),
        ("ultrascale scale --ye", ["--yes"]),
    ],
)
def test_names_are_offered_without_loading_what_a_command_needs(
    words: str, offered: list[str]
) -> None:
    found, loaded = completed(words)
    assert set(offered) <= set(found)
    assert all(name.startswith(words.split(" ")[-1]) for name in found)
    assert _HEAVY & loaded == set()


@pytest.mark.parametrize(
    "text",
    [*("pools: [", "a: &a [*a]", "pools: 7\njobs: x\n", "pools: [{nam: x}, 3]", "\x00", ""), None],
)
def test_a_broken_or_missing_file_offers_nothing_in_silence(
    text: str | None, tmp_path: Path
) -> None:
    if text is not None:
        (tmp_path / "a.yaml").write_text(text)
    for command in ("scale", "submit"):
        assert completed(f"ultrascale {command} a.yaml ", cwd=tmp_path)[0] == []


def test_the_starts_of_a_new_cluster_are_offered() -> None:
    assert completed("ultrascale init --from h")[0] == ["hopper", "hybrid"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_is_printed(shell: str, ultrascale: Ultrascale) -> None:
    answer = ultrascale("--show-completion", shell)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert "_ULTRASCALE_COMPLETE" in answer.stdout
    if program := shutil.which(shell):
        subprocess.run([program, "-n"], input=answer.stdout, text=True, check=True)


@pytest.mark.parametrize("option", ["--show-completion", "--install-completion"])
def test_an_unknown_shell_is_wrong_use(option: str, ultrascale: Ultrascale) -> None:
    answer = ultrascale(option, "tcsh")
    assert answer.returncode == 64
    assert "bash, zsh, fish" in answer.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_installed_into_the_home(
    shell: str, ultrascale: Ultrascale, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    answer = ultrascale("--install-completion", shell)
    assert answer.returncode == 0
    written = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert any("_ULTRASCALE_COMPLETE" in text for text in written)


def test_bash_itself_completes(tmp_path: Path) -> None:
    script = f"""
        PATH={Path(sys.executable).parent}:$PATH
        source <(ultrascale --show-completion bash)
        COMP_WORDS=(ultrascale scale {HYBRID} eks-s) COMP_CWORD=3
        _ultrascale_completion ultrascale
        echo "${{COMPREPLY[@]}}"
    """
    answer = subprocess.run(
        ["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )

    assert answer.stdout.split() == ["eks-spot"]


def test_the_shell_follows_from_where_the_command_runs(
    ultrascale: Ultrascale, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shellingham.detect_shell", lambda: ("zsh", "/bin/zsh"))
    assert ultrascale("--show-completion") == ultrascale("--show-completion", "zsh")
