"""Tables of keys in the reference pages, which `make docs` makes from the types."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.support.folders import ROOT
from tests.support.pools import make_document
from tools import reference
from ultrascale import config
from ultrascale.config._document import read

_LONGEST_CELL = 200
_TOP = [info.alias or name for name, info in config.cluster_type().model_fields.items()]
_SECTIONS = (*_TOP, "jobs.training", "jobs.batch", "jobs.service")
ROWS = [row for section in _SECTIONS for row in reference.rows(section)]
CLUSTERS = sorted((ROOT / "clusters").glob("*.yaml"))


@cache
def schema() -> dict[str, Any]:
    return config.cluster_type().model_json_schema()


each_page = pytest.mark.parametrize("page", reference.PAGES, ids=lambda page: page.name)


@each_page
def test_a_page_has_the_tables_that_the_types_make(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert reference.with_tables(text) == text, "run `make docs`"


def test_each_key_stands_in_a_table() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in reference.PAGES)
    assert [row.key for row in ROWS if f"| `{row.key}`" not in pages] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key)
def test_each_key_is_explained_on_one_line(row: reference.Row) -> None:
    assert row.meaning
    assert row.default not in ("`None`", "`[]`"), "say in `Default:` what happens"
    assert all(0 < len(cell) <= _LONGEST_CELL and "\n" not in cell for cell in row.cells())


class TestSchema:
    """Schema that editors check a cluster file against."""

    def test_it_is_a_schema(self) -> None:
        Draft202012Validator.check_schema(schema())

    @pytest.mark.parametrize("file", CLUSTERS, ids=lambda file: file.stem)
    def test_every_file_of_ours_agrees_with_it(self, file: Path) -> None:
        document = json.loads(json.dumps(read(file).value, default=str))
        assert [*Draft202012Validator(schema()).iter_errors(document)] == []

    def test_a_job_without_a_kind_is_a_training_job(self) -> None:
        checked = Draft202012Validator(schema())
        assert checked.is_valid(make_document(jobs={"tune": {"nodes": 2}}))
        assert checked.is_valid(make_document(jobs={"tune": {"kind": "batch", "retries": 2}}))
        assert not checked.is_valid(make_document(jobs={"tune": {"retries": 2}}))

    def test_a_misspelt_key_does_not(self) -> None:
        assert [*Draft202012Validator(schema()).iter_errors(make_document(regoin="x"))] != []
