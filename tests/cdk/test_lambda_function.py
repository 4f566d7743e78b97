"""The asset with the code of the functions that run in AWS Lambda."""

import shutil
import subprocess
import sys
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_lambda as lambda_

import ultrascale
from ultrascale_constructs.lambda_function import lambda_code

SOURCES = Path(ultrascale.__file__).parent
HANDLERS = sorted(path.parent.name for path in SOURCES.glob("lambdas/*/handler.py"))


def make_asset(outdir: Path) -> Path:
    """Return the folder that becomes the code."""
    app = cdk.App(outdir=str(outdir), builtin_cloud_formation_validation=False)
    stack = cdk.Stack(app, "Test", env=cdk.Environment(region="us-west-2"))
    lambda_.Function(
        stack,
        "Function",
        runtime=lambda_.Runtime.PYTHON_3_14,
        code=lambda_code(),
        handler="lambdas.any.any",
    )
    (folder,) = Path(app.synth().directory).glob("asset.*")
    return folder


def files(folder: Path) -> set[Path]:
    return {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def asset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_asset(tmp_path_factory.mktemp("cdk"))


def test_it_holds_the_code_of_the_functions_and_nothing_else(asset: Path) -> None:
    sources = (SOURCES / "lambdas").rglob("*.py")

    assert files(asset) == {path.relative_to(SOURCES) for path in sources}


def test_compiled_files_and_the_rest_of_the_project_do_not_change_it(
    asset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "ultrascale"
    shutil.copytree(SOURCES / "lambdas", package / "lambdas")
    for folder in (package, package / "lambdas", package / "lambdas" / "block_calendar"):
        (folder / "__pycache__").mkdir(exist_ok=True)
        (folder / "__pycache__" / "module.cpython-311.pyc").write_text("compiled")
    (package / "plan.py").write_text("changed = True")
    monkeypatch.setattr(ultrascale, "__file__", str(package / "__init__.py"))

    other = make_asset(tmp_path / "cdk.out")

    assert other.name == asset.name
    assert files(other) == files(asset)


@pytest.mark.parametrize("function", HANDLERS)
def test_a_handler_needs_nothing_but_the_asset_and_boto3(asset: Path, function: str) -> None:
    program = (
        "import sys\n"
        f"import lambdas.{function}.handler as handler\n"
        f"assert handler.__file__.startswith({str(asset)!r})\n"
        "assert not {'ultrascale', 'pydantic', 'yaml', 'aws_cdk'} & set(sys.modules)\n"
    )

    subprocess.run([sys.executable, "-B", "-c", program], cwd=asset, check=True)
