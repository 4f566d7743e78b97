"""A synthesis from an empty folder: its templates, and the modules that it takes time to load."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.assembly import Assembly
from tests.support.folders import ROOT

_PROGRAM = """
import runpy, sys
runpy.run_module("ultrascale_stacks", run_name="__main__")
print("LOADED", *sys.modules)
"""
# Node.js answers one thread at a time; while one of them has it start the app, another imports.
_IMPORTS = """
from importlib import import_module
from pkgutil import iter_modules
import cdk8s, jsii, aws_cdk.lambda_layer_kubectl_v35
import ultrascale_constructs, ultrascale_stacks

jsii.kernel.provider = None
for package in (ultrascale_constructs, ultrascale_stacks):
    for module in iter_modules(package.__path__, f"{package.__name__}."):
        if not module.name.endswith(".__main__"):
            import_module(module.name)
"""
# Of an older app of the user, whose cdk.json lies in the folder.
_FLAGS_OF_OTHERS = {
    "@aws-cdk/core:defaultCrossStackReferences": "weak",
    "@aws-cdk/aws-iam:minimizePolicies": False,
}


def loaded_by(file: str, folder: Path) -> set[str]:
    """Return the modules that a synthesis of a cluster file without validation has loaded.

    The working folder has one called as a library that the CDK needs.
    """
    (folder / "constructs").mkdir()
    (folder / "constructs" / "__init__.py").touch()
    environment = {
        **{name: value for name, value in os.environ.items() if name != "JSII_NODE"},
        "CDK_CONTEXT_JSON": json.dumps({"cluster": str(ROOT / file), **_FLAGS_OF_OTHERS}),
        "CDK_OUTDIR": str(folder / "cdk.out"),
        "CDK_VALIDATION": "false",
        # Without it there is our Node.js alone. Another seed orders sets and hashes differently.
        "PATH": "",
        "PYTHONHASHSEED": "1",
    }
    answer = subprocess.run(
        [sys.executable, "-P", "-c", _PROGRAM],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    (line,) = (line for line in answer.stdout.splitlines() if line.startswith("LOADED "))
    return set(line.split())


def test_a_synthesis_loads_what_its_cluster_takes(tmp_path: Path, trainium: Assembly) -> None:
    loaded = loaded_by("clusters/trainium-bert.yaml", tmp_path)

    assert "aws_cdk.aws_ec2" in loaded
    # Of the command line and of those who ask AWS.
    assert not {"boto3", "botocore", "kubernetes", "rich", "typer", "ultrascale.cli"} & loaded
    # Of HyperPod, of the backend's database and of the pipeline.
    services = ("sagemaker", "rds", "codepipeline")
    assert not {f"aws_cdk.aws_{service}" for service in services} & loaded
    assert "cdk_nag" not in loaded
    for pattern in ("cdk.out/*.template.json", "dist/*.k8s.yaml"):
        made = [path.relative_to(tmp_path) for path in sorted(tmp_path.glob(pattern))]
        assert len(made) > 10
        for path in made:
            assert (tmp_path / path).read_bytes() == (trainium.folder / path).read_bytes(), path


def test_no_module_asks_node_while_it_is_imported() -> None:
    answer = subprocess.run(
        [sys.executable, "-P", "-c", _IMPORTS], capture_output=True, text=True, check=False
    )

    assert answer.returncode == 0, answer.stderr
