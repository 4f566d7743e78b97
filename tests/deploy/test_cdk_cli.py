"""Another CDK CLI than the pinned one writes other templates, or reads none of ours."""

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.support.deployments import VERSION, install_cdk
from tests.support.folders import ROOT
from ultrascale import cdk_cli
from ultrascale.cdk_cli import CDK_CLI_VERSION, CdkCli, find_cdk_cli
from ultrascale.deploy.cdk import DeployCommand
from ultrascale.errors import UltrascaleError

# What npm does, into the folder that it runs in.
_NPM = """
import json, pathlib, sys
package = pathlib.Path("node_modules/aws-cdk")
(package / "bin").mkdir(parents=True)
(package / "bin" / "cdk").write_text("#!/usr/bin/env node")
(package / "package.json").write_text(json.dumps({{"name": "aws-cdk", "version": "{version}"}}))
with open("{log}", "a") as log:
    print(*sys.argv[1:], *sorted(path.name for path in pathlib.Path().iterdir()), file=log)
{then}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder of a user who has nothing installed."""
    working = tmp_path / "work"
    working.mkdir()
    monkeypatch.chdir(working)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("ULTRASCALE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ULTRASCALE_CDK", raising=False)
    return working


def npm(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *, version: str = VERSION, then: str = ""
) -> Path:
    """Let npm install a version, and then do something; return the file of its calls."""
    log = folder.parent / "npm.log"
    code = _NPM.format(version=version, log=log, then=then)
    monkeypatch.setattr(cdk_cli, "npm", lambda: (sys.executable, "-c", code))
    return log


# --- the cache ----------------------------------------------------------------------------------


def test_it_is_installed_once_with_the_hashes_of_the_lock(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = npm(folder, monkeypatch)

    first, second = find_cdk_cli(), find_cdk_cli()

    assert first == second
    assert first.version == VERSION
    assert first.program.is_relative_to(folder.parent / "cache")
    (call,) = log.read_text().splitlines()
    assert call.split()[:2] == ["ci", "--include=dev"]
    assert call.split()[-4:] == [".npmrc", "node_modules", "package-lock.json", "package.json"]
    assert not [*folder.iterdir()]
    names = sorted(path.name for path in (folder.parent / "cache").iterdir())
    assert names == [first.program.parents[3].name, f"{first.program.parents[3].name}.lock"]


@pytest.mark.parametrize("lost", ["node_modules/aws-cdk/bin/cdk", "node_modules"])
def test_a_half_installed_one_is_installed_anew(
    folder: Path, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    log = npm(folder, monkeypatch)
    whole = find_cdk_cli().program.parents[3]
    (whole / lost).rename(folder / "lost")
    found = find_cdk_cli()
    assert found.program.is_file()
    assert len(log.read_text().splitlines()) == 2


@pytest.mark.parametrize(
    "given", [{"then": "sys.exit('npm error ENOTFOUND registry.npmjs.org')"}, {"version": "3.0.0"}]
)
def test_npm_that_fails_leaves_nothing_and_is_quoted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, str]
) -> None:
    npm(folder, monkeypatch, **given)
    with pytest.raises(UltrascaleError) as raised:
        find_cdk_cli()
    assert "downloaded once, from the npm registry" in str(raised.value)
    assert "--cdk or ULTRASCALE_CDK" in str(raised.value)
    assert ("ENOTFOUND" in str(raised.value)) == ("then" in given)
    assert [path.suffix for path in (folder.parent / "cache").iterdir()] == [".lock"]


# --- one that is installed ----------------------------------------------------------------------


def test_the_pinned_one_of_the_folder_or_of_the_path_is_taken(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = install_cdk(folder.parent / "global", "#!/bin/sh\n")
    monkeypatch.setenv("PATH", str(elsewhere.parent))
    assert find_cdk_cli() == CdkCli(program=elsewhere, version=VERSION)
    near = install_cdk(folder, "#!/bin/sh\n")
    assert find_cdk_cli() == CdkCli(program=near, version=VERSION)


def test_another_version_is_passed_over_and_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    npm(folder, monkeypatch)
    near = install_cdk(folder, "#!/bin/sh\n", version="3.0.0")
    found = find_cdk_cli()
    assert found.version == VERSION
    assert found.note == f"the CDK CLI {VERSION} is used: {near} is 3.0.0"


@pytest.mark.parametrize(
    ("version", "told"),
    [("3.0.0", "aws-cdk@latest is a broken 3.0.0"), ("2.1000.0", "it is too old")],
)
@pytest.mark.parametrize("by", ["--cdk", "ULTRASCALE_CDK"])
def test_a_named_one_that_reads_no_assembly_of_ours_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, by: str, version: str, told: str
) -> None:
    program = install_cdk(folder, "#!/bin/sh\n", version=version)
    if by == "ULTRASCALE_CDK":
        monkeypatch.setenv(by, str(program))
    with pytest.raises(UltrascaleError, match=f"{by}: .* is {version}, and {VERSION} .*{told}"):
        find_cdk_cli(program if by == "--cdk" else None)


def test_a_newer_one_that_is_named_is_used_and_told(folder: Path) -> None:
    program = install_cdk(folder, "#!/bin/sh\n", version="2.9999.0")
    found = find_cdk_cli(program)
    assert (found.program, found.version) == (program, "2.9999.0")
    assert f"is tested with {VERSION}" in found.note


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (None, "--cdk: no program, got none; name an installed `cdk`"),
        ("#!/bin/sh\necho hello", "--cdk: states no version, so it is no CDK CLI"),
    ],
)
def test_what_is_no_cdk_is_refused(folder: Path, script: str | None, told: str) -> None:
    program = Path("none")
    if script is not None:
        program = folder / "tool"
        program.write_text(script)
        program.chmod(0o755)
    with pytest.raises(UltrascaleError, match=told):
        find_cdk_cli(program)


@pytest.mark.parametrize("by", ["--cdk", "ULTRASCALE_CDK", "PATH"])
def test_a_version_manager_is_called_by_the_name_of_its_link(
    folder: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """mise and Volta have one program for all, and look at the name that it is called by."""
    manager = folder / "manager"
    manager.write_text(f'#!/bin/sh\n[ "${{0##*/}}" = cdk ] && echo {VERSION}\n')
    manager.chmod(0o755)
    link = folder / "shims" / "cdk"
    link.parent.mkdir()
    link.symlink_to(manager)
    if by == "ULTRASCALE_CDK":
        monkeypatch.setenv(by, str(link))
    elif by == "PATH":
        monkeypatch.setenv("PATH", f"{link.parent}:/usr/bin:/bin")

    found = find_cdk_cli(link if by == "--cdk" else None)

    assert found == CdkCli(program=link, version=VERSION)
    assert found.command == (str(link),)


def test_what_lies_beside_a_node_that_is_named_does_not_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """/usr/bin has a python3 as well, which knows no package of the virtual environment."""
    beside = folder / "usr"
    beside.mkdir()
    for name, says in {"node": "v22.0.0", "python3": "system"}.items():
        (beside / name).write_text(f"#!/bin/sh\necho {says}\n")
        (beside / name).chmod(0o755)
    monkeypatch.setenv("ULTRASCALE_NODE", str(beside / "node"))
    monkeypatch.setenv("PATH", f"{beside}:/usr/bin:/bin")

    environment = CdkCli(program=folder / "cdk", version=VERSION).environment()

    own = Path(sys.executable).parent
    assert shutil.which("python3", path=environment["PATH"]) == str(own / "python3")
    node = shutil.which("node", path=environment["PATH"])
    assert node is not None
    assert Path(node).resolve() == beside / "node"
    assert environment["JSII_NODE"] == str(beside / "node")


def test_it_runs_on_our_node_and_the_python_of_the_command(folder: Path) -> None:
    """The `node` of the virtual environment would be one more process for each stack."""
    program = folder / "cdk"
    program.write_text("#!/usr/bin/env node\n")
    cdk = CdkCli(program=program, version=VERSION)
    node, python = cdk.environment()["PATH"].split(os.pathsep)[:2]

    assert cdk.command == (str(Path(node, "node")), str(program))
    with Path(node, "node").open("rb") as file:
        assert file.read(2) != b"#!"
    assert python == str(Path(sys.executable).parent)


# --- the pin ------------------------------------------------------------------------------------


def test_the_lock_the_package_and_the_catalog_name_one_version() -> None:
    package = json.loads((ROOT / "package.json").read_text())
    lock = json.loads((ROOT / "package-lock.json").read_text())
    locked = lock["packages"]["node_modules/aws-cdk"]
    assert package["devDependencies"] == {"aws-cdk": CDK_CLI_VERSION}
    assert locked["version"] == CDK_CLI_VERSION == VERSION
    assert locked["integrity"].startswith("sha512-")


@pytest.mark.setup
def test_the_pinned_cdk_deploy_knows_every_option_that_it_is_given() -> None:
    source = (ROOT / "node_modules" / "aws-cdk" / "lib" / "index.js").read_text(encoding="utf-8")
    general, _, rest = source[source.index('yargs.env("CDK")') :].partition('"deploy [STACKS..]"')
    deploy = rest[: rest.index(").command(")]
    command = DeployCommand(
        cdk=CdkCli(program=Path("cdk"), version=VERSION),
        assembly=Path("cdk.out"),
        profile="ml",
        import_existing=True,
    )

    given = set(re.findall(r"--(?:no-)?([a-z-]+)", command.by_hand("a")))

    own = set(re.findall(r'\.option\("([a-z-]+)"', general.partition(".command(")[0] + deploy))
    assert {"exclusively", "app", "color", "notices"} <= given <= own
    assert '"never"' in deploy
    assert '"events"' in deploy


def test_a_cache_that_cannot_be_written_says_what_to_set(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "file").touch()
    monkeypatch.setenv("ULTRASCALE_CACHE", str(folder / "file" / "cache"))
    with pytest.raises(UltrascaleError, match=r"cannot be installed there: .*ULTRASCALE_CACHE"):
        find_cdk_cli()
