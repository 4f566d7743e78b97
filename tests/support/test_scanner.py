"""The scan says what has no reason, and which reason has nothing left to excuse."""

import json
from pathlib import Path

import pytest
import yaml

from tests.support import scanner
from tests.support.scanner import (
    EXCEPTIONS,
    Finding,
    ScanError,
    changed,
    findings,
    fingerprint,
    unexplained,
)

OPEN = Finding("CKV_1", "AWS::S3::Bucket.Data1", "closed buckets")
REASONS = {"CKV_1": {"why": "it is public on purpose", "only": ["AWS::S3::Bucket.Data*"]}}


def answer(**summary: int) -> str:
    failed = {"check_id": "CKV_1", "resource": OPEN.resource, "check_name": OPEN.title}
    return json.dumps({"summary": summary, "results": {"failed_checks": [failed]}})


def test_a_finding_without_a_reason_is_told() -> None:
    assert unexplained([OPEN], {}) == ["CKV_1 AWS::S3::Bucket.Data1: closed buckets"]


def test_a_finding_with_a_reason_is_accepted() -> None:
    assert unexplained([OPEN, OPEN], REASONS) == []


def test_a_reason_for_all_resources_is_for_each() -> None:
    assert unexplained([OPEN], {"CKV_1": {"why": "everything is public"}}) == []


def test_a_reason_does_not_excuse_another_resource() -> None:
    other = Finding("CKV_1", "AWS::S3::Bucket.Logs", "closed buckets")

    assert unexplained([OPEN, other], REASONS) == ["CKV_1 AWS::S3::Bucket.Logs: closed buckets"]


def test_a_reason_that_nothing_needs_any_more_is_told() -> None:
    assert unexplained([], REASONS) == [
        "CKV_1 AWS::S3::Bucket.Data*: excepted, and nothing needs it"
    ]


def test_a_scan_of_some_files_needs_no_reason_of_the_others() -> None:
    assert unexplained([], REASONS, whole=False) == []
    assert unexplained([OPEN], {}, whole=False) == ["CKV_1 AWS::S3::Bucket.Data1: closed buckets"]


def test_only_files_that_no_scan_passed_are_scanned_again(tmp_path: Path) -> None:
    asset, files = "a" * 64, [tmp_path / name for name in ("first", "same", "other")]
    for file in files:
        file.write_text(f"{file.name} {asset}")
    passed = {fingerprint(file.read_text()) for file in files}

    files[1].write_text(f"same {'b' * 64}")
    assert changed(files, passed) == []

    files[2].write_text("another")
    assert changed(files, passed) == [files[0], files[2]]


@pytest.fixture
def synthesized(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two templates and an object, which a scanner judges that notes what it is given."""
    folder = tmp_path / "synthesized"
    for name in (
        "auto/cdk.out/a.template.json",
        "auto/cdk.out/b.template.json",
        "auto/dist/c.k8s.yaml",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    report = json.dumps({"summary": {"passed": 1}, "results": {"failed_checks": []}})
    program = tmp_path / "checkov"
    program.write_text(f"#!/bin/sh\necho \"$@\" >> {tmp_path}/given\necho '{report}'\n")
    program.chmod(0o755)
    (tmp_path / "exceptions.yaml").write_text("{}")
    monkeypatch.setattr(scanner, "EXCEPTIONS", tmp_path / "exceptions.yaml")
    monkeypatch.setattr(scanner, "PASSED", tmp_path / "posture.txt")
    monkeypatch.setattr(scanner, "synthesize_pipelines", print)
    return folder


def scanned(folder: Path, *, whole: bool) -> list[str]:
    """Run a scan; return the names of the files that the scanner was given."""
    given = folder.parent / "given"
    given.write_text("")
    assert scanner.main(str(folder.parent / "checkov"), folder, whole=whole) == 0
    return [Path(word).name for word in given.read_text().split() if word.startswith("/")]


def test_what_a_whole_scan_passed_is_scanned_again_when_it_or_an_exception_changes(
    synthesized: Path,
) -> None:
    everything = ["a.template.json", "b.template.json", "c.k8s.yaml"]
    assert scanned(synthesized, whole=False) == everything

    assert scanned(synthesized, whole=False) == []
    (synthesized / "auto/cdk.out/b.template.json").write_text("an open bucket")
    assert scanned(synthesized, whole=False) == everything[:2]
    assert scanned(synthesized, whole=True) == everything
    assert scanned(synthesized, whole=False) == []

    scanner.EXCEPTIONS.write_text("# another\n{}")
    assert scanned(synthesized, whole=False) == everything


def test_what_the_scanner_finds_is_read() -> None:
    assert [*findings("kubernetes", answer(passed=3, parsing_errors=0))] == [OPEN]


@pytest.mark.parametrize("summary", [{"passed": 3, "parsing_errors": 1}, {"passed": 0}, {}])
def test_a_scan_that_judged_nothing_is_no_clean_one(summary: dict[str, int]) -> None:
    with pytest.raises(ScanError, match="not everything was judged"):
        next(findings("kubernetes", answer(**summary)))


def test_every_exception_says_why() -> None:
    for check, entry in yaml.safe_load(EXCEPTIONS.read_text()).items():
        assert set(entry) <= {"why", "only"}, check
        assert len(entry["why"].split()) > 3, check
