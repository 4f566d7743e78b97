"""The table of commands: each entry loads, and listing or checking loads little."""

import subprocess
import sys

import pytest

from tests.support.folders import ROOT
from ultrascale import cli

# A line of 80 characters holds no more beside the longest name.
_LONGEST_SUMMARY = 58
_CHECK = ("check", "clusters/trainium-bert.yaml")
_PROGRAM = """
import sys
from ultrascale.cli import main
sys.argv = ["ultrascale", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print(*sys.modules, file=sys.stderr)
"""


def modules_after(*arguments: str) -> set[str]:
    """Return the modules that a process has imported once a command has ended."""
    answer = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    return set(answer.stderr.split())


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_loads_under_its_name(name: str) -> None:
    assert cli.load(name).name == name


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_a_summary_is_listed_whole(name: str) -> None:
    summary = cli.COMMANDS[name].summary
    assert len(summary) <= _LONGEST_SUMMARY
    assert summary.endswith(".")


def test_help_loads_no_command_and_no_cluster_file() -> None:
    loaded = modules_after("--help")

    ours = {name for name in loaded if name.startswith("ultrascale.")}
    assert ours == {
        "ultrascale.cli",
        "ultrascale.cli.output",
        "ultrascale.errors",
        "ultrascale.frozen",
        "ultrascale.progress",
    }
    assert not {"pydantic", "rich", "yaml"} & loaded


def test_check_loads_what_it_judges_by_and_nothing_else() -> None:
    loaded = modules_after(*_CHECK)
    assert not {"aws_cdk", "boto3", "botocore", "cdk8s", "kubernetes", "rich"} & loaded
    commands = {name for name in loaded if name.startswith("ultrascale.cli.")}
    # The clock, by which facts expire, is with the options.
    own = ("check", "complete", "options", "output")
    assert commands == {f"ultrascale.cli.{name}" for name in own}
    others = ("account", "deploy", "guard", "offers", "operate", "preflight", "sbom", "teardown")
    assert not {f"ultrascale.{name}" for name in others} & loaded
