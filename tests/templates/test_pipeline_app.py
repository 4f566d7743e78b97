"""Pins and refusals of the pipeline, without synthesis."""

import json
from pathlib import Path

import pytest

from tests.support.folders import ROOT
from tests.support.pipelines import DEV, two_accounts
from ultrascale.cdk_cli import CDK_CLI_VERSION
from ultrascale_constructs.pipeline import permissions
from ultrascale_stacks import app as entry


def test_no_template_says_how_it_was_synthesized() -> None:
    """The CDK's record of the constructs in use is another one within a pipeline."""
    settings = json.loads((ROOT / "cdk.json").read_text())

    assert settings["versionReporting"] is False


def test_every_build_has_the_command_line_of_the_project() -> None:
    package = json.loads((ROOT / "package.json").read_text())

    assert package["devDependencies"]["aws-cdk"] == CDK_CLI_VERSION


def test_a_check_that_the_library_changes_is_noticed() -> None:
    with pytest.raises(LookupError, match="no longer runs 'cdk dif -a"):
        permissions.replaced('"cdk diff"', {"cdk dif -a": ""})


def test_a_file_without_a_pipeline_has_none_to_synthesize(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_accounts(tmp_path)
    monkeypatch.chdir(tmp_path)
    # The CDK CLI writes into a file the part of a large context that fits no variable.
    rest = tmp_path / "context.json"
    rest.write_text(json.dumps({"pipeline": DEV}))
    monkeypatch.setenv("CDK_CONTEXT_JSON", json.dumps({"cluster": "clusters/prod.yaml"}))
    monkeypatch.setenv("CONTEXT_OVERFLOW_LOCATION_ENV", str(rest))

    with pytest.raises(SystemExit, match=f"{DEV}: no pipeline; add the section, or use -c cluster"):
        entry.main()
