"""Flags of the CDK: they choose the templates, so nothing but the product sets them."""

import io
import json
import tarfile
from importlib.resources import files
from pathlib import Path
from typing import Any

import aws_cdk as cdk

from tests.support.folders import ROOT
from ultrascale_stacks.feature_flags import FLAGS
from ultrascale_stacks.pipeline import ClusterApp

_OURS: dict[str, Any] = {
    "@aws-cdk/core:defaultCrossStackReferences": "strong",
    "@aws-cdk/aws-ec2:restrictDefaultSecurityGroup": False,
}


def test_every_recommended_flag_of_the_library_is_set() -> None:
    (archive,) = (
        file for file in files("aws_cdk._jsii").iterdir() if file.name.startswith("aws-cdk-lib@")
    )
    with tarfile.open(fileobj=io.BytesIO(archive.read_bytes())) as packed:
        file = packed.extractfile("package/recommended-feature-flags.json")
        assert file is not None
        recommended = json.load(file)

    assert {**recommended, **_OURS} == dict(FLAGS)


def test_no_settings_of_a_folder_change_a_template(tmp_path: Path) -> None:
    """A cdk.json of a user's other app may have flags of its own; the pipeline's apps too."""
    flag = "@aws-cdk/core:defaultCrossStackReferences"
    given = {flag: "weak", "cluster": "a.yaml"}

    app = cdk.App(outdir=str(tmp_path / "a"), context=given, post_cli_context=dict(FLAGS))
    stage = ClusterApp(folder=tmp_path / "b", context=app.node.get_all_context())

    for each in (app, stage):
        assert each.node.try_get_context(flag) == "strong"
        assert each.node.try_get_context("cluster") == "a.yaml"


def test_the_checkout_has_no_flags_of_its_own() -> None:
    assert json.loads((ROOT / "cdk.json").read_text()) == {
        "app": "python app.py",
        "versionReporting": False,
        "notices": False,
        "context": {"cli-telemetry": False},
    }
