"""The CDK's command line reports to nobody, fetches no notices, and takes no orders of a shell.

The pinned one runs for real. Before it reports it gives the installation an id, in a file, and what
it fetches it keeps in files.
"""

import json
import re
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.folders import ROOT
from ultrascale.cdk_cli import CDK_CLI_VARIABLES, CdkCli, find_cdk_cli
from ultrascale.deploy.cdk import CdkDeploy, DeployCommand
from ultrascale.init import CDK_SETTINGS

pytestmark = pytest.mark.setup
_SETTINGS = (ROOT / "cdk.json", *sorted((ROOT / "examples").glob("*/cdk.json")))
_STACK = {
    "type": "aws:cloudformation:stack",
    "environment": "aws://111122223333/us-east-1",
    "properties": {"templateFile": "a.json"},
}
_ASSEMBLY = {"version": "54.0.0", "artifacts": {"a": _STACK}}
_SECONDS = 60.0


@pytest.fixture
def cdk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CdkCli:
    for name in CDK_CLI_VARIABLES:
        # As empty as in a shell that mentions them, which switches nothing off.
        monkeypatch.setenv(name, "")
    monkeypatch.chdir(tmp_path)
    program = ROOT / "node_modules" / "aws-cdk" / "bin" / "cdk"
    return find_cdk_cli(program)


def write_assembly(folder: Path) -> None:
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps(_ASSEMBLY))
    (folder / "a.json").write_text("{}")


def traces(cdk: CdkCli, environment: Mapping[str, str], folder: Path) -> set[str]:
    """Run `cdk list` in ``folder``; return the files of its reports and of its fetches."""
    write_assembly(folder / "app")
    subprocess.run(
        [*cdk.command, "list", "--app", "app"],
        cwd=folder,
        # A report of this test goes to the port `discard` of this machine.
        env={
            **environment,
            "CDK_HOME": str(folder / "home"),
            "TELEMETRY_ENDPOINT": "http://127.0.0.1:9/metrics",
        },
        capture_output=True,
        timeout=_SECONDS,
        check=True,
    )
    return {path.name for path in (folder / "home").rglob("*") if path.is_file()}


def test_the_cdk_of_our_commands_reports_and_fetches_nothing(cdk: CdkCli, tmp_path: Path) -> None:
    assert traces(cdk, cdk.environment(), tmp_path) == set()


def test_without_our_variable_it_reports(cdk: CdkCli, tmp_path: Path) -> None:
    """Otherwise the test above would hold whatever the commands do."""
    environment = {**cdk.environment(), "CDK_DISABLE_CLI_TELEMETRY": ""}
    assert traces(cdk, environment, tmp_path) == {"installation-id.json"}


def test_a_plain_cdk_in_a_folder_of_init_reports_and_fetches_nothing(
    cdk: CdkCli, tmp_path: Path
) -> None:
    (tmp_path / "cdk.json").write_text(CDK_SETTINGS)
    plain = {
        name: value for name, value in cdk.environment().items() if name not in CDK_CLI_VARIABLES
    }
    assert traces(cdk, plain, tmp_path) == set()


def arguments_of_deploy(cdk: CdkCli, folder: Path) -> str:
    """Start the `cdk deploy` of ``folder`` without credentials; return the arguments it reads."""
    by_hand = DeployCommand(cdk=cdk, assembly=folder).by_hand("a")
    command = (*cdk.command, *shlex.split(by_hand)[2:], "--verbose")
    process = CdkDeploy(command, cdk)
    printed = "\n".join(process.lines())
    assert process.wait(), "it has no credentials"
    (arguments,) = re.findall(r"Command line arguments: (\{.*?^\})", printed, re.M | re.S)
    return arguments


def test_no_variable_of_a_shell_makes_a_deployment_express(
    cdk: CdkCli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    write_assembly(tmp_path / "app")
    stated = arguments_of_deploy(cdk, tmp_path / "app")
    for name in ("EXPRESS", "FORCE", "HOTSWAP", "IGNORE_ERRORS", "IMPORT_EXISTING_RESOURCES"):
        monkeypatch.setenv(f"CDK_{name}", "true")
    monkeypatch.setenv("CDK_ROLLBACK", "false")
    monkeypatch.setenv("CDK_REQUIRE_APPROVAL", "broadening")
    (tmp_path / ".cdk.json").write_text(json.dumps({"express": True, "rollback": False}))

    assert "express: false" in stated
    assert "rollback: true" in stated
    assert arguments_of_deploy(cdk, tmp_path / "app") == stated


@pytest.mark.parametrize("path", _SETTINGS, ids=lambda path: path.parent.name)
def test_a_plain_cdk_in_a_folder_of_ours_has_what_switches_both_off(path: Path) -> None:
    off, settings = json.loads(CDK_SETTINGS), json.loads(path.read_text(encoding="utf-8"))
    assert settings["notices"] is off["notices"] is False
    assert off["context"].items() <= settings["context"].items()
