"""Modules that a synthesis loads: each costs every user its time, whatever the cluster has."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.folders import ROOT

_PROGRAM = """
import sys
from ultrascale_stacks.app import main
main()
print("LOADED", *sys.modules)
"""


def loaded_by(file: str, folder: Path) -> set[str]:
    """Return the modules that a synthesis of a cluster file without validation has loaded."""
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    environment = {
        **os.environ,
        "CDK_CONTEXT_JSON": json.dumps({**context, "cluster": str(ROOT / file)}),
        "CDK_OUTDIR": str(folder / "cdk.out"),
        "CDK_VALIDATION": "false",
    }
    answer = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    (line,) = (line for line in answer.stdout.splitlines() if line.startswith("LOADED "))
    return set(line.split())


def test_a_synthesis_loads_what_its_cluster_takes(tmp_path: Path) -> None:
    loaded = loaded_by("clusters/trainium-bert.yaml", tmp_path)

    assert "aws_cdk.aws_ec2" in loaded
    # Of the command line and of those who ask AWS.
    assert not {"boto3", "botocore", "kubernetes", "rich", "typer", "ultrascale.cli"} & loaded
    # Of HyperPod, of the backend's database and of the pipeline.
    services = ("sagemaker", "rds", "codepipeline")
    assert not {f"aws_cdk.aws_{service}" for service in services} & loaded
    assert "cdk_nag" not in loaded
    assert (tmp_path / "cdk.out" / "manifest.json").is_file()
    assert list((tmp_path / "dist").glob("*.k8s.yaml"))
