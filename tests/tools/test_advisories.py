"""The table of advisories is written anew from OSV's records, kept here as small fixtures."""

import csv
import shutil
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.support.folders import DATA
from tools.advisories import base_score, main, records
from ultrascale.catalog import advisories, tables

DUMP = DATA / "osv"
OLD = "PYSEC-2026-2297"
RANGES = "PYSEC-2026-9001"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the catalog, which the loader reads."""
    copy = tmp_path / "catalog"
    shutil.copytree(tables.FOLDER, copy)
    monkeypatch.setattr(tables.read_table, "__defaults__", (copy,))
    monkeypatch.setattr(advisories, "advisories", advisories.advisories.__wrapped__)
    return copy


@pytest.fixture
def table(folder: Path) -> list[dict[str, str]]:
    main([str(DUMP), "--read", "2026-12-01"], folder)
    with (folder / "advisories.csv").open() as file:
        return [*csv.DictReader(file)]


def under(version: str) -> set[str]:
    stated = {item.needs for item in advisories.advisories()}
    return {item.id for item in advisories.advisories_of("vllm", version, stated)}


def test_databases_that_repeat_each_other_make_one_advisory(table: list[dict[str, str]]) -> None:
    (row,) = (row for row in table if OLD in (row["id"], *row["aliases"].split()))
    assert (row["id"], row["aliases"]) == (
        "CVE-2026-27893",
        "GHSA-7972-pg2x-xr59 PYSEC-2026-2297",
    )
    assert (row["severity"], row["published"]) == ("8.8", "2026-03-26")
    # Words of a person stay.
    assert row["runs_code"] == "yes"
    assert row["impact"].startswith("code of a model's repository")


@pytest.mark.parametrize(
    ("version", "affected"),
    [
        ("0.1", True),
        ("0.4.9", True),
        ("0.5.0rc1", True),
        ("0.5.0", False),
        ("0.6.0.dev1", False),
        ("0.6.0rc1", True),
        ("0.6.3", True),
        ("0.6.3.post1", False),
        ("0.6.4rc1", False),
        ("99.0", False),
        ("1!0.1", True),
        ("1!9", True),
    ],
)
def test_a_range_ends_where_its_record_says(
    version: str, affected: bool, table: list[dict[str, str]]
) -> None:
    assert table
    assert (RANGES in under(version)) == affected


def test_versions_without_ranges_are_the_affected_ones(table: list[dict[str, str]]) -> None:
    assert table
    assert [
        version
        for version in ("0.6.9", "0.7.0", "0.7.1", "0.7.2")
        if "PYSEC-2026-9003" in under(version)
    ] == ["0.7.0", "0.7.1"]


def test_others_packages_and_withdrawn_records_are_left_out(
    table: list[dict[str, str]], folder: Path
) -> None:
    ids = {row["id"] for row in table}
    assert not ids & {"GHSA-aaaa-bbbb-cccc", "PYSEC-2026-9002"}
    # Records of other databases stay.
    assert {row["id"] for row in tables.read_table("advisories.csv", tables.FOLDER)} <= ids
    assert {row["package"] for row in table} == {"vllm"}
    assert {row["runs_code"] for row in table if row["id"] == RANGES} == {"yes"}
    reading = next(
        row for row in tables.read_table("readings.csv", folder) if row["kind"] == "advisories"
    )
    assert reading["seen"] == "2026-12-01"


def test_a_second_writing_and_a_zip_change_nothing(
    table: list[dict[str, str]], folder: Path, tmp_path: Path
) -> None:
    assert table
    first = (folder / "advisories.csv").read_bytes()
    with ZipFile(tmp_path / "all.zip", "w") as archive:
        for file in DUMP.glob("*.json"):
            archive.write(file, file.name)
    assert [*records(tmp_path / "all.zip")] == [*records(DUMP)]
    main([str(tmp_path / "all.zip"), "--read", "2026-12-01"], folder)
    assert (folder / "advisories.csv").read_bytes() == first


# Source: https://www.first.org/cvss/v3-1/examples
@pytest.mark.parametrize(
    ("vector", "score"),
    [
        ("CVSS:3.1/AV:N/AC:L/PR:N/UI:R/S:C/C:L/I:L/A:N", 6.1),
        ("CVSS:3.1/AV:N/AC:L/PR:L/UI:N/S:C/C:L/I:L/A:N", 6.4),
        ("CVSS:3.1/AV:N/AC:H/PR:N/UI:R/S:U/C:L/I:N/A:N", 3.1),
        ("CVSS:3.1/AV:L/AC:L/PR:H/UI:N/S:U/C:L/I:L/A:L", 4.2),
        ("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H", 9.8),
        ("CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:N", 0.0),
        ("CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N", None),
    ],
)
def test_scores_are_those_of_the_standard(vector: str, score: float | None) -> None:
    assert base_score(vector) == score
