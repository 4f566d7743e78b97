"""The evidence of an acceptance: closed, without names, and the same for the same answers."""

import json
import re
import subprocess
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree as ET

import pytest

from tests.support.assembly import Assembly
from tests.support.folders import ROOT
from ultrascale import plan
from ultrascale.accept import bundle as bundles
from ultrascale.accept.bundle import (
    CHECKSUMS,
    STATEMENT,
    SUMMARY,
    documents_of,
    faults,
    input_hashes,
)
from ultrascale.accept.model import NEEDS, Acceptance, Kept, Level, Outcome, Run
from ultrascale.catalog.tables import read_table
from ultrascale.cluster_api.server import Cluster
from ultrascale.errors import QuestionError
from ultrascale.findings import Finding, State

FILE = ROOT / "clusters" / "trainium-bert.yaml"
ACCOUNT = "111122223333"
AT = datetime(2026, 12, 1, 12, tzinfo=UTC)


LOG = """\
step 1
export HF_TOKEN=hf_secret
PATH=/bin
https_proxy=http://me:secret@proxy
loss=3.2
"""


def outcome(level: Level, check: str, state: State, evidence: str = "as the file says") -> Outcome:
    finding = Finding(check=check, subject="trn1", state=state, evidence=evidence)
    return Outcome(level=level, finding=finding, seconds=1.5)


def acceptance(*outcomes: Outcome, **fields: Any) -> Acceptance:
    given: dict[str, Any] = {
        "id": "r1",
        "levels": ("objects",),
        "started": AT,
        "ended": AT + timedelta(minutes=2),
        "outcomes": outcomes or (outcome("objects", "applied", "pass"),),
        "versions": {"server": "v1.35.2", "client": "0.1.0"},
    }
    return Acceptance(**{**given, **fields})


@pytest.fixture
def run(trainium: Assembly) -> Run:
    """The input of a run, with the synthesized files of the cluster."""
    return Run(
        id="r1",
        file=FILE,
        plan=plan.load(FILE),
        cluster=Cluster(cast("Any", None), "nobody is asked"),
        at=AT,
        manifests=trainium.folder / "dist",
        assembly=trainium.folder / "cdk.out",
    )


@pytest.fixture
def today(run: Run) -> Mapping[str, Any]:
    return input_hashes(run.file, run.assembly, run.manifests)


@pytest.fixture
def bundle(run: Run, tmp_path: Path) -> Path:
    folder = tmp_path / "evidence"
    differing = outcome("objects", "fields", "differs", f"arn:aws:iam::{ACCOUNT}:role/x of bert")
    logs = {"train/0": LOG}
    unseen = outcome("nodes", "devices", "not run", "size 0")
    kept = Kept(logs=logs)
    passed = outcome("objects", "applied", "pass")
    write_bundle(folder, run, acceptance(passed, differing, unseen, kept=kept))
    return folder


def write_bundle(folder: Path, run: Run, results: Acceptance, *, names: bool = False) -> None:
    bundles.write_bundle(folder, run, results, documents_of(run), names=names)


def read(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_bytes())


def files(folder: Path) -> dict[str, bytes]:
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def test_a_bundle_as_it_was_written_has_no_fault(bundle: Path, today: Mapping[str, Any]) -> None:
    assert [*faults(bundle, today)] == []
    # Whoever has no ultrascale checks it too.
    command = ["sha256sum", "--check", "--strict", "--quiet", CHECKSUMS]
    assert subprocess.run(command, cwd=bundle, check=False).returncode == 0


def append(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes() + b" ")


def forge(folder: Path, content: bytes) -> None:
    """Replace the summary, and its line in the list."""
    before = sha256((folder / SUMMARY).read_bytes()).hexdigest()
    listed = (folder / CHECKSUMS).read_text()
    (folder / CHECKSUMS).write_text(listed.replace(before, sha256(content).hexdigest()))
    (folder / SUMMARY).write_bytes(content)


HARM: dict[str, tuple[Callable[[Path], object], str]] = {
    **{
        f"one byte more in {name}": (append(name), "changed files")
        for name in (
            SUMMARY,
            "junit.xml",
            "report.html",
            "bom.json",
            "plan.json",
            "logs/train%2F0.log",
        )
    },
    "one byte more in the statement": (append(STATEMENT), "not that of these files"),
    "one byte more in the list": (append(CHECKSUMS), "not that of these files"),
    "a file more": (lambda folder: (folder / "more.txt").touch(), "not of the bundle: more.txt"),
    "a file more in a folder": (lambda f: (f / "logs" / "more").touch(), "logs/more"),
    "a folder more": (lambda folder: (folder / "empty").mkdir(), "not of the bundle: empty"),
    "a file less": (lambda folder: (folder / "junit.xml").unlink(), "gone: junit.xml"),
    "a list of another summary": (lambda folder: forge(folder, b"{}"), "is not that of a bundle"),
    "no list": (lambda folder: (folder / CHECKSUMS).unlink(), "no bundle"),
    "a link": (lambda folder: (folder / "link").symlink_to(SUMMARY), "links"),
    "a link to a folder": (lambda folder: (folder / "all").symlink_to(folder), "links"),
}


@pytest.mark.parametrize("harm", HARM)
def test_a_bundle_with_a_byte_a_file_or_a_link_more_is_refused(
    harm: str, bundle: Path, today: Mapping[str, Any]
) -> None:
    change, told = HARM[harm]
    change(bundle)
    assert told in "; ".join(faults(bundle, today))


def test_a_bundle_of_another_file_or_template_is_refused(
    bundle: Path, run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "other.yaml"
    file.write_text(f"{FILE.read_text()}# more\n")
    today = input_hashes(file, run.assembly, run.manifests)
    today["templates"][0]["sha256"] = "0" * 64
    other, templates = faults(bundle, today)
    assert "cluster file of today" in other
    assert today["templates"][0]["name"] in templates


def test_no_name_of_cluster_or_account_leaves_unless_it_may(
    bundle: Path, run: Run, tmp_path: Path
) -> None:
    name = re.compile(rb"(?<![A-Za-z0-9])" + run.plan.name.encode() + rb"(?![A-Za-z0-9])")
    for path, content in files(bundle).items():
        assert ACCOUNT.encode() not in content, path
        assert not name.search(content), path
    summary = read(bundle, SUMMARY)
    assert summary["cluster"].startswith("cluster-")
    named = tmp_path / "named"
    write_bundle(named, run, acceptance(), names=True)
    assert read(named, SUMMARY)["cluster"] == run.plan.name


def test_logs_have_no_environment(bundle: Path) -> None:
    assert (bundle / "logs" / "train%2F0.log").read_text() == "step 1\nloss=3.2\n"


def test_equal_answers_give_equal_bytes_but_for_times(run: Run, tmp_path: Path) -> None:
    later = acceptance(started=AT + timedelta(hours=1), ended=AT + timedelta(hours=2))
    for name, result in (("one", acceptance()), ("two", acceptance()), ("later", later)):
        write_bundle(tmp_path / name, run, result)
    one, two, after = (files(tmp_path / name) for name in ("one", "two", "later"))
    assert one == two
    assert {name for name in one if one[name] != after[name]} == {SUMMARY, CHECKSUMS, STATEMENT}


def test_a_folder_with_files_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    (tmp_path / "link").symlink_to(tmp_path)
    for folder in (tmp_path, tmp_path / "mine", tmp_path / "link"):
        with pytest.raises(QuestionError, match="not an empty folder"):
            write_bundle(folder, run, acceptance())
    (tmp_path / "new").mkdir()
    write_bundle(tmp_path / "new", run, acceptance())


def test_a_check_that_was_not_run_is_never_a_pass(bundle: Path) -> None:
    cases = {case.get("name"): case for case in ET.parse(bundle / "junit.xml").iter("testcase")}
    kinds = {name: [part.tag for part in case] for name, case in cases.items()}
    assert kinds == {"applied trn1": [], "fields trn1": ["failure"], "devices trn1": ["error"]}
    predicate = read(bundle, STATEMENT)["predicate"]
    assert predicate["result"] == "FAILED"
    assert predicate["passedTests"] == ["objects/applied/trn1"]
    assert predicate["warnedTests"] == ["nodes/devices/trn1"]
    assert predicate["failedTests"] == ["objects/fields/trn1"]


@pytest.mark.parametrize(
    ("states", "fields", "result"),
    [
        (["pass"], {}, "PASSED"),
        (["pass", "not run"], {}, "WARNED"),
        (["not run", "differs"], {}, "FAILED"),
        (["pass"], {"left": ["pod x"]}, "FAILED"),
    ],
)
def test_the_result_is_the_worst(
    states: list[State], fields: Any, result: str, run: Run, tmp_path: Path
) -> None:
    outcomes = [outcome("objects", f"c{n}", state) for n, state in enumerate(states)]
    write_bundle(tmp_path / "new", run, acceptance(*outcomes, **fields))
    assert read(tmp_path / "new", STATEMENT)["predicate"]["result"] == result


def test_a_claim_is_of_the_class_that_the_run_gave_it(run: Run, tmp_path: Path) -> None:
    write_bundle(tmp_path / "new", run, acceptance())
    classes = {row["subject"]: row for row in read(tmp_path / "new", "claims.json") if row["by"]}
    assert classes["rights, the front"]["class"] == "admitted by an API server"
    assert classes["rights, the front"]["by"] == "v1.35.2"
    assert classes["services"]["class"] == "proven offline"
    assert classes["needs, money"]["class"] == "estimated"
    failed = acceptance(outcome("objects", "applied", "differs"))
    write_bundle(tmp_path / "failed", run, failed)
    rows = read(tmp_path / "failed", "claims.json")
    assert {row["class"] for row in rows} == {"proven offline", "not shown", "estimated"}


def test_the_claims_are_those_of_the_page_and_their_tests_are_there() -> None:
    page = (ROOT / "SCOPE.md").read_text().split("## What was shown")[1].split("\n## ")[0]
    told = {
        tuple(cell.strip() for cell in line.strip()[1:-1].split("|"))
        for line in page.splitlines()
        if line.startswith("| ") and not line.startswith("| subject")
    }
    claims = read_table("claims.csv", ROOT / "ultrascale" / "accept")
    columns = ("subject", "claim", "shown", "not_shown")
    assert told <= {tuple(row[column] for column in columns) for row in claims}
    for row in claims:
        assert all((ROOT / path).exists() for path in row["tests"].split()), row
        assert row["tests"] or row["subject"] == "needs, money"
        assert row["level"] in ("", *NEEDS)


def test_the_page_shows_the_checks_before_the_plan(bundle: Path) -> None:
    page = (bundle / "report.html").read_text()
    assert page.index('id="acceptance"') < page.index('id="topology"')
    assert "No account was asked" not in page
    assert "Failed" in page
