"""Another CDK CLI than the pinned one writes other templates, or reads none of ours."""

import json
import re
import sys
from pathlib import Path

import pytest

from tests.support.deployments import VERSION, make_project
from tests.support.folders import ROOT
from ultrascale.cdk_cli import find_cdk_cli
from ultrascale.deploy.cdk import DeployCommand
from ultrascale.errors import UltrascaleError


def test_the_one_that_is_pinned_is_taken(tmp_path: Path) -> None:
    project = make_project(tmp_path)

    cdk = find_cdk_cli(tmp_path)

    assert cdk == project.cdk
    assert cdk.program.is_file()


installed = pytest.mark.skipif(
    not (ROOT / "node_modules" / ".installed").exists(), reason="`make synth` installs the CDK CLI"
)


@installed
def test_the_project_pins_what_it_installs() -> None:
    assert find_cdk_cli().project == ROOT


@installed
def test_the_pinned_cdk_deploy_knows_every_option_that_it_is_given() -> None:
    source = (ROOT / "node_modules" / "aws-cdk" / "lib" / "index.js").read_text(encoding="utf-8")
    general, _, rest = source[source.index('yargs.env("CDK")') :].partition('"deploy [STACKS..]"')
    deploy = rest[: rest.index(").command(")]
    command = DeployCommand(
        cdk=find_cdk_cli(), assembly=Path("cdk.out"), profile="ml", import_existing=True
    )

    given = set(re.findall(r"--(?:no-)?([a-z-]+)", command.by_hand("a")))

    own = set(re.findall(r'\.option\("([a-z-]+)"', general.partition(".command(")[0] + deploy))
    assert {"exclusively", "app", "color", "notices"} <= given <= own
    assert '"never"' in deploy
    assert '"events"' in deploy


def test_another_version_is_refused(tmp_path: Path) -> None:
    make_project(tmp_path)
    other = tmp_path / "node_modules" / "aws-cdk" / "package.json"
    other.write_text(json.dumps({"version": "3.0.0"}))

    with pytest.raises(
        UltrascaleError, match=f"is 3.0.0, and {VERSION} is pinned; run `make synth`"
    ):
        find_cdk_cli(tmp_path)


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        ("node_modules/aws-cdk/package.json", "is not installed; run `make synth` there"),
        ("app.py", "no project here"),
    ],
)
def test_what_is_not_there_is_told(tmp_path: Path, missing: str, told: str) -> None:
    make_project(tmp_path)
    (tmp_path / missing).unlink()

    with pytest.raises(UltrascaleError, match=told):
        find_cdk_cli(tmp_path)


def test_it_runs_on_the_bundled_node_and_the_python_of_the_command(tmp_path: Path) -> None:
    """The `node` of the virtual environment would be one more process for each stack."""
    node, python = make_project(tmp_path).cdk.environment()["PATH"].split(":")[:2]

    with Path(node, "node").open("rb") as program:
        assert program.read(2) != b"#!"
    assert python == str(Path(sys.executable).parent)
