"""The summary after `make synth`, the last text before money is spent."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.assembly import Assembly
from tests.support.command_line import Ultrascale
from tests.support.jobs import HYBRID
from ultrascale import plan
from ultrascale.cli.summary_views import print_summary
from ultrascale.synthesis import read_stacks_of


def printed(assembly: Assembly, capsys: pytest.CaptureFixture[str], **changes: Any) -> str:
    print_summary(
        replace(assembly.plan, **changes),
        stacks=read_stacks_of(assembly.plan, assembly.folder / "cdk.out"),
        assembly=assembly.folder / "cdk.out",
        manifests=assembly.folder / "dist",
    )
    return capsys.readouterr().out


def test_it_names_each_image_with_its_tag_and_the_command_that_builds_them(
    trainium: Assembly, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = printed(trainium, capsys).splitlines()

    for build in trainium.plan.images.builds:
        (line,) = (line for line in lines if line.split()[:1] == [build.repository])
        assert line.split()[1:] == [
            f"images/{build.dockerfile}",
            "for",
            f"{build.architecture},",
            "tag",
            build.tag,
        ]
    assert any(
        "aws codebuild start-build --project-name trainium-bert-images" in line for line in lines
    )


def test_it_says_why_a_repository_stays_empty(
    trainium: Assembly, capsys: pytest.CaptureFixture[str]
) -> None:
    images = trainium.plan.images
    unbuilt = dict.fromkeys(images.repositories, "by images.builds")
    text = printed(trainium, capsys, images=replace(images, builds=(), unbuilt=unbuilt))
    assert "not built: by images.builds" in text
    assert "start-build" not in text


def test_it_says_how_many_nodes_each_team_owns_before_its_jobs_wait_for_them(
    mixed: Assembly, capsys: pytest.CaptureFixture[str]
) -> None:
    teams = printed(mixed, capsys, parts=plan.load(HYBRID).parts).partition("team ")[2]
    rows = [" ".join(line.split()) for line in teams.splitlines()]
    assert rows[2:4] == [
        "research 3 ml.p4de.24xlarge 40 yes up to 50 % more hyperpod-ns-research",
        "production 5 ml.p4de.24xlarge 60 yes no hyperpod-ns-production",
    ]
    assert "nodes of its own" not in printed(mixed, capsys)


def test_it_never_shows_the_stacks_of_another_file_under_this_ones_name(
    trainium: Assembly, ultrascale: Ultrascale
) -> None:
    folder = trainium.folder / "cdk.out"
    answer = ultrascale("summary", HYBRID, "--assembly", folder)
    assert answer.returncode == 1
    assert f"{folder}: not what the file of hybrid-hyperpod becomes now: " in answer.stderr
    assert answer.stdout == ""
