"""`ultrascale synth`: what is there stays until there is something to replace it."""

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from tests.support.command_line import Ultrascale
from tests.support.folders import ROOT
from ultrascale import synthesis
from ultrascale.errors import QuestionError, UltrascaleError
from ultrascale.synthesis import Target, synthesize
from ultrascale_stacks.app import main

# It writes what the app writes, where its environment says.
_APP = """
import json, os, pathlib, sys, time
context = json.loads(os.environ["CDK_CONTEXT_JSON"])
assembly, manifests = pathlib.Path(os.environ["CDK_OUTDIR"]), pathlib.Path(context["manifests"])
report = {{"pluginReports": [{report}]}}
(assembly / "validation-report.json").write_text(json.dumps(report))
(manifests / "0000-a.k8s.yaml").write_text("kind: New")
(assembly / "asset.told").write_text(json.dumps([context, dict(os.environ)]))
(assembly / "manifest.json").write_text(json.dumps({manifest}))
{then}
"""
FILE = Path("a.yaml")
ASSEMBLY: dict[str, Any] = {"version": "55.0.0", "artifacts": {}}


def app(
    monkeypatch: pytest.MonkeyPatch, *, then: str = "", report: Any = None, manifest: Any = None
) -> None:
    """Let the app write an assembly with one report, and then do something."""
    code = _APP.format(then=then, report=report or {}, manifest=manifest or ASSEMBLY)
    monkeypatch.setattr(synthesis, "APP", ("-c", code))


def test_an_installation_without_the_cdk_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(synthesis, "find_spec", dict[str, object]().get)
    with pytest.raises(UltrascaleError, match=r"pip install '\./ultrascale-[\d.]+-py3-none-any"):
        synthesize(FILE, Target(assembly=tmp_path / "a", manifests=tmp_path / "b"))
    assert [*tmp_path.iterdir()] == []


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder in which something was synthesized before."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cdk.out").mkdir()
    (tmp_path / "cdk.out" / "manifest.json").write_text(json.dumps(ASSEMBLY))
    (tmp_path / "cdk.out" / "old.template.json").touch()
    (tmp_path / "cdk.out" / "asset.1.zip").write_text("60 MB")
    (tmp_path / "cdk.out" / "asset.2.zip").write_text("a part of 60 MB")
    named = {"files": {"1": {"source": {"path": "asset.1.zip", "packaging": "file"}}}}
    (tmp_path / "cdk.out" / "old.assets.json").write_text(json.dumps(named))
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "old.k8s.yaml").touch()
    return tmp_path


def is_as_it_was(folder: Path) -> bool:
    return sorted(str(path.relative_to(folder)) for path in folder.glob("**/*")) == [
        "cdk.out",
        "cdk.out/asset.1.zip",
        "cdk.out/asset.2.zip",
        "cdk.out/manifest.json",
        "cdk.out/old.assets.json",
        "cdk.out/old.template.json",
        "dist",
        "dist/old.k8s.yaml",
    ]


def test_a_synthesis_replaces_all_of_the_last_one_and_copies_no_asset_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app(monkeypatch)
    asset = (folder / "cdk.out" / "asset.1.zip").stat().st_ino

    synthesize(FILE, Target())

    assert {file.name for file in (folder / "dist").iterdir()} == {"0000-a.k8s.yaml"}
    assert not (folder / "cdk.out" / "old.template.json").exists()
    assert (folder / "cdk.out" / "asset.1.zip").stat().st_ino == asset
    # No manifest names it: a killed `cdk synth` may have left a part of it.
    assert not (folder / "cdk.out" / "asset.2.zip").exists()
    # Nothing is left of the work.
    assert {file.name for file in folder.iterdir()} == {"cdk.out", "dist"}


def test_the_app_gets_no_settings_of_the_cdk_but_ours(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CDK_VALIDATION=false in somebody's profile would switch the validation off."""
    monkeypatch.setenv("CDK_VALIDATION", "false")
    monkeypatch.setenv("CDK_CONTEXT_JSON", '{"cluster": "other.yaml"}')
    app(monkeypatch)

    synthesize(FILE, Target(), app="pipeline")

    context, environment = json.loads((folder / "cdk.out" / "asset.told").read_text())
    assert (context["pipeline"], "cluster" in context) == ("a.yaml", False)
    assert "CDK_VALIDATION" not in environment


def finding(severity: str, **more: Any) -> dict[str, Any]:
    place = {"constructPath": "c-a/B", "cloudFormationResource": {"logicalId": "B1"}}
    told = {"ruleName": "R1", "description": "is open", "violatingConstructs": [place]}
    return {"pluginName": "P", "conclusion": "success"} | {
        "violations": [told | {"severity": severity, **more}]
    }


@pytest.mark.parametrize("severity", ["fatal", "error", "warning"])
def test_a_finding_that_nobody_has_acknowledged_fails_the_synthesis(
    folder: Path, monkeypatch: pytest.MonkeyPatch, severity: str
) -> None:
    """As `cdk synth --strict`: warnings are errors."""
    app(monkeypatch, report=finding(severity, suggestedFix="close it"))

    with pytest.raises(UltrascaleError) as raised:
        synthesize(FILE, Target())

    assert str(raised.value).splitlines() == [
        "a.yaml: the synthesis has findings that nobody has acknowledged:",
        f"{severity} R1 (P): is open",
        "  fix: close it",
        "  at c-a/B B1",
    ]
    assert is_as_it_was(folder)


def test_information_and_acknowledged_findings_fail_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = finding("info") | {"suppressedViolations": [{"severity": "error"}]}
    app(monkeypatch, report=told)

    synthesize(FILE, Target())

    assert not is_as_it_was(folder)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"report": {"pluginName": "P", "conclusion": "failure"}}, "names no finding"),
        ({"manifest": {"missing": [{"key": "zones"}]}}, "would look up in an account: zones"),
        ({"then": "os.remove(assembly / 'validation-report.json')"}, "nothing was validated"),
        ({"then": "sys.exit('a.yaml: what is wrong')"}, r"\Aa.yaml: what is wrong\Z"),
        ({"then": "os.abort()"}, "ended with -6"),
    ],
)
def test_a_synthesis_that_fails_leaves_what_one_wanted_to_compare_with(
    folder: Path, monkeypatch: pytest.MonkeyPatch, given: Any, told: str
) -> None:
    app(monkeypatch, **given)

    with pytest.raises(UltrascaleError, match=told):
        synthesize(FILE, Target())

    assert is_as_it_was(folder)


# --- folders ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "told"),
    [
        (Target(assembly=Path()), "--output: would be replaced as a whole"),
        (Target(assembly=Path("..")), "--output: would be replaced as a whole"),
        (Target(assembly=Path("src")), "--output: holds what no synthesis wrote .*main.py"),
        (Target(manifests=Path("src")), "--manifests: holds what no synthesis wrote .*main.py"),
        (Target(assembly=Path("file")), "--output: is no folder"),
        (Target(manifests=Path("cdk.out")), "--manifests: lies in the folder of --output"),
        (Target(manifests=Path("cdk.out/dist")), "--manifests: lies in the folder of --output"),
        (Target(assembly=Path("dist/cdk.out")), "--manifests: lies in the folder of --output"),
    ],
)
def test_no_folder_is_replaced_in_which_somebody_keeps_other_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch, target: Target, told: str
) -> None:
    app(monkeypatch)
    (folder / "src").mkdir()
    (folder / "src" / "main.py").touch()
    (folder / "file").touch()

    with pytest.raises(QuestionError, match=told):
        synthesize(FILE, target)

    assert (folder / "src" / "main.py").exists()


@pytest.mark.parametrize(
    ("files", "stranger"),
    [
        ({"manifest.json": '{"name": "My page"}', "index.html": ""}, "manifest.json"),
        ({"manifest.json": '{"manifest_version": 3, "version": "1.0"}'}, "manifest.json"),
        ({"manifest.json": "[]"}, "manifest.json"),
        ({"manifest.json": "{"}, "manifest.json"),
        ({"manifest.json": json.dumps(ASSEMBLY), "notes.md": "mine"}, "notes.md"),
        ({"manifest.json": json.dumps({"version": 3, "artifacts": []})}, "manifest.json"),
    ],
)
def test_a_manifest_of_something_else_makes_no_folder_an_assembly(
    folder: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], stranger: str
) -> None:
    """Web pages and browser extensions have a `manifest.json`, too."""
    app(monkeypatch)
    (folder / "web").mkdir()
    for name, content in files.items():
        (folder / "web" / name).write_text(content)

    with pytest.raises(QuestionError, match=f"--output: holds what no .*web/{stranger};"):
        synthesize(FILE, Target(assembly=Path("web")))

    assert {file.name for file in (folder / "web").iterdir()} == {*files}


def test_all_that_a_pipeline_the_cdk_cli_and_a_failed_synthesis_leave_is_replaced(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app(monkeypatch)
    for name in ("c.dot", "buildspec-1-FileAsset.yaml", "tree.json", "synth.lock", ".DS_Store"):
        (folder / "cdk.out" / name).touch()
    for name in ("assembly-prod", "cluster-prod", ".cache", "asset.2"):
        (folder / "cdk.out" / name).mkdir()
    (folder / "dist" / ".DS_Store").touch()

    synthesize(FILE, Target(assembly=Path("new/out"), manifests=Path("new/dist")))

    # Folders of other names are made.
    assert (folder / "new" / "out" / "manifest.json").is_file()
    assert (folder / "new" / "dist" / "0000-a.k8s.yaml").is_file()
    assert (folder / "cdk.out" / "c.dot").is_file()

    synthesize(FILE, Target())

    assert not (folder / "cdk.out" / "c.dot").exists()
    for file in (folder / "cdk.out").iterdir():
        file.unlink()
    (folder / "cdk.out" / "tree.json").touch()

    synthesize(FILE, Target())

    assert (folder / "cdk.out" / "manifest.json").is_file()
    assert not (folder / "cdk.out" / "tree.json").exists()


def test_a_folder_that_cannot_be_written_is_told_before_anything_runs(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app(monkeypatch, then="raise SystemExit('it ran')")
    (folder / "file").touch()

    with pytest.raises(UltrascaleError, match=r"file: cannot be written to: .*by --output"):
        synthesize(FILE, Target(assembly=Path("file/cdk.out")))


def test_both_folders_are_replaced_or_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Templates of one synthesis beside manifests of another would deploy a mixture."""
    app(monkeypatch)
    rename = Path.rename

    def fails(self: Path, target: Path) -> Path:
        if target == folder / "dist" and self.name == "new":
            raise OSError(16, "Device or resource busy", str(self), None, str(target))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fails)

    with pytest.raises(UltrascaleError, match="dist: cannot be replaced: Device or resource busy"):
        synthesize(FILE, Target())

    assert is_as_it_was(folder)


# --- interruption -------------------------------------------------------------------------------

# Behind `nohup` hangups are ignored, and processes inherit that.
_RUN = """
import signal, sys
from pathlib import Path
from ultrascale import synthesis
signal.signal(signal.SIGHUP, signal.SIG_DFL)
synthesis.APP = ("-c", sys.argv[1])
synthesis.synthesize(Path("a.yaml"), synthesis.Target())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_synthesis_changes_nothing_and_leaves_no_process(
    folder: Path, number: signal.Signals
) -> None:
    pids = folder.parent / f"{folder.name}-pid"
    wait = f"pathlib.Path({str(pids)!r}).write_text(str(os.getpid())); time.sleep(60)"
    process = subprocess.Popen(
        [sys.executable, "-c", _RUN, _APP.format(then=wait, report={}, manifest=ASSEMBLY)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=folder,
        stderr=subprocess.DEVNULL,
    )
    while not (pids.exists() and pids.read_text()):
        assert process.poll() is None
        time.sleep(0.02)
    child = int(pids.read_text())

    process.send_signal(number)

    assert process.wait(timeout=20) != 0
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
    assert is_as_it_was(folder)


def test_ctrl_c_ends_the_command_with_130(
    ultrascale: Ultrascale, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app(monkeypatch, then=f"os.kill({os.getpid()}, {int(signal.SIGINT)}); time.sleep(60)")

    answer = ultrascale("synth", ROOT / "clusters" / "trainium-bert.yaml")

    assert answer.returncode == 130
    assert "stopped: the folders are as they were" in answer.stderr
    assert is_as_it_was(folder)


def test_two_at_once_leave_folders_of_one_synthesis(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = "(assembly / 'asset.who').write_text(sys.argv[0] + str(os.getpid()));"
    same = "(manifests / '0001-who.k8s.yaml').write_text((assembly / 'asset.who').read_text())"
    code = _APP.format(then=f"{mark}{same}", report={}, manifest=ASSEMBLY)
    start = [sys.executable, "-c", _RUN, code]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = [subprocess.Popen(start, env=environment, cwd=folder) for _ in range(3)]

    assert [process.wait(timeout=60) for process in running] == [0, 0, 0]

    assert (folder / "cdk.out" / "asset.who").read_text() == (
        folder / "dist" / "0001-who.k8s.yaml"
    ).read_text()
    assert {file.name for file in folder.iterdir()} == {"cdk.out", "dist"}


def test_a_folder_that_goes_while_its_assets_are_looked_for_stops_no_synthesis(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app(monkeypatch)

    monkeypatch.setattr(Path, "rglob", Mock(side_effect=FileNotFoundError))

    synthesize(FILE, Target())

    assert (folder / "dist" / "0000-a.k8s.yaml").read_text() == "kind: New"


def test_the_next_synthesis_takes_away_what_a_killed_one_left(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app(monkeypatch)
    for name in (".cdk.out-abcd1234", ".dist-abcd1234", ".cdk.out-underway", ".cdk.out-ofausers"):
        (folder / name / ("mine" if "ofausers" in name else "new")).mkdir(parents=True)
    under_way = os.open(folder / ".cdk.out-underway", os.O_RDONLY)
    fcntl.flock(under_way, fcntl.LOCK_EX)

    synthesize(FILE, Target())

    os.close(under_way)
    left = {file.name for file in folder.iterdir()}
    assert left == {"cdk.out", "dist", ".cdk.out-underway", ".cdk.out-ofausers"}


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device", "/tmp/x"),
        RuntimeError("ENOSPC: no space left on device, copyfile 'a' -> 'b'"),
    ],
)
def test_a_full_disk_ends_the_app_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def full(*_: object) -> None:
        raise error

    monkeypatch.setattr("ultrascale_stacks.app._synthesize_named_file", full)

    with pytest.raises(SystemExit) as ended:
        main()

    assert "no space left on device" in str(ended.value)
    assert "TMPDIR" in str(ended.value)
