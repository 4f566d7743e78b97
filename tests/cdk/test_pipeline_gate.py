"""The commands that look before a stage is deployed, run: the first that fails ends the run."""

import os
import subprocess
from datetime import datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.support.pipelines import PROD, load_pipeline, two_accounts
from tests.support.pools import HYPERPOD_POOL, make_pool
from ultrascale.parts.pipeline.facts import APPROVAL_COMMENT_LENGTH
from ultrascale.parts.pipeline.model import PipelinePlan, StagePlan
from ultrascale.plan.capacity import plan_window
from ultrascale_constructs.pipeline.gate import gate_commands

LOG = "https://console.aws.amazon.com/codesuite/codebuild/projects/gate/build/gate%3A" + "0" * 150
SAID = "protected: the file system «training» would go,\n\twith its data\n" * 40


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PipelinePlan:
    monkeypatch.chdir(tmp_path)
    plan = load_pipeline(two_accounts(tmp_path))
    assert plan is not None
    return plan


def look(
    pipeline: PipelinePlan, folder: Path, stage: StagePlan | None = None, /, **ends: int
) -> subprocess.CompletedProcess[str]:
    """Run the commands with programs that record what they are asked, and end as ``ends`` says."""
    tools = folder / "tools"
    for path in (tools / name for name in ("aws", "python", "ultrascale")):
        path.parent.mkdir(parents=True, exist_ok=True)
        statuses = "".join(f'[ "$1" = {word} ] && exit {status}\n' for word, status in ends.items())
        path.write_text(
            f'#!/bin/sh\necho "$(basename "$0") $*" >> {folder}/calls\n'
            f'[ "$1" = diff ] && cat {folder}/said\n{statuses}exit 0\n'
        )
        path.chmod(0o755)
    (folder / "said").write_text(SAID)
    script = " && ".join(
        [
            *gate_commands(stage or pipeline.stages[-1], pipeline),
            'printf "\\n%s\\n%s" "$LOG" "$CHANGES"',
        ]
    )
    return subprocess.run(
        ["/bin/sh", "-c", script],
        cwd=folder,
        env={
            "PATH": f"{tools}:{os.environ['PATH']}",
            "HOME": str(folder),
            "CODEBUILD_BUILD_URL": LOG,
        },
        capture_output=True,
        text=True,
        check=False,
    )


def calls(folder: Path) -> list[str]:
    return [" ".join(line.split()[:2]) for line in (folder / "calls").read_text().splitlines()]


def test_all_of_it_is_looked_at_by_the_role_of_the_stages_account(
    plan: PipelinePlan, tmp_path: Path
) -> None:
    assert look(plan, tmp_path).returncode == 0

    asked = (tmp_path / "calls").read_text()
    assert calls(tmp_path) == [
        *["python -m", "aws s3", "python -m"],
        "ultrascale synth",
        *["aws configure"] * 3,
        "ultrascale plan",
        "ultrascale preflight",
        "ultrascale diff",
    ]
    assert f"profile.gate.role_arn {plan.stages[-1].gate_role_arn}\n" in asked
    assert "profile.gate.credential_source EcsContainer\n" in asked
    assert f"diff {PROD} --assembly cdk.out --profile gate --replace Key1" in asked


@pytest.mark.parametrize(
    ("word", "status"), [("synth", 2), ("plan", 2), ("preflight", 3), ("diff", 3)]
)
def test_whatever_fails_ends_the_run_there(
    plan: PipelinePlan, tmp_path: Path, word: str, status: int
) -> None:
    end = look(plan, tmp_path, **{word: status})

    assert end.returncode == status
    assert calls(tmp_path)[-1].endswith(f" {word}")


def test_what_would_go_is_in_the_log_of_a_run_that_it_ends(
    plan: PipelinePlan, tmp_path: Path
) -> None:
    assert SAID in look(plan, tmp_path, diff=3).stdout


def test_an_approval_shows_what_fits_into_its_comment_on_one_line(
    plan: PipelinePlan, tmp_path: Path
) -> None:
    *_, log, changes = look(plan, tmp_path).stdout.split("\n")

    assert log == LOG
    assert changes.startswith("protected: the file system training would go, with its data ")
    assert changes.isascii()
    assert (
        len(f"What it needs, replaces, opens and rolls: {log} {changes}") == APPROVAL_COMMENT_LENGTH
    )


@pytest.mark.parametrize(
    ("moment", "waits"),
    [
        ("2026-12-01T11:29:00Z", True),
        ("2026-12-01T11:30:00Z", False),
        ("2026-12-08T10:29:59Z", False),
        # SageMaker takes the nodes of a training plan an hour before it ends.
        ("2026-12-08T10:30:00Z", True),
    ],
)
def test_a_run_leaves_out_stacks_whose_nodes_are_not_there_yet_or_taken_back(
    plan: PipelinePlan, tmp_path: Path, moment: str, waits: bool
) -> None:
    window = plan_window(make_pool(**HYPERPOD_POOL))
    assert window is not None
    last = replace(plan.stages[-1], node_windows=(window,), on_nodes=("research-teams",))
    date = tmp_path / "tools" / "date"
    date.parent.mkdir()
    date.write_text(f"#!/bin/sh\necho {datetime.fromisoformat(moment).timestamp():.0f}\n")
    date.chmod(0o755)

    end = look(plan, tmp_path, last)

    assert end.returncode == 0
    assert ("research-teams" in end.stdout) == waits
