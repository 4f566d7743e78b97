"""Tables of needs: each figure is the one that `plan --json` prints at its place."""

from datetime import datetime

import pytest

from tests.report.test_page import CLUSTERS, document_of, needs_of
from tests.support.cases import for_each
from tests.support.pages import at_path
from ultrascale.cli.table_names import TABLES as NAMES
from ultrascale.plan.needs.report import TABLES
from ultrascale.plan.needs.tables import Datum, Output, Table, columns, plain, row

TABLE = Table(
    columns=(
        *columns("words", "pool"),
        *columns("number", "interfaces", output="text"),
        *columns("number", "nodes", "limit"),
        *columns("sentences", "sum", output="page"),
    ),
    rows=(
        row("gpu", "8", "4", "", "2 + 2", tone="good"),
        row("cpu", "2", "3", "", "1 + 2", tone="bad", output="page"),
    ),
)


@for_each(CLUSTERS)
def test_each_cell_of_a_figure_names_its_place_in_the_json(cluster: str) -> None:
    document, needs = document_of(cluster), needs_of(cluster)

    figures = [
        part
        for makers in TABLES.values()
        for make in makers
        for line in make(needs).rows
        for cell in line.cells
        for part in cell
        if isinstance(part, Datum)
    ]
    assert len(figures) > 100
    for figure in figures:
        value = at_path(document, figure.path)
        is_time = isinstance(figure.value, datetime)
        assert value == (figure.machine if is_time else figure.value), figure.path


def test_the_command_line_offers_each_table_in_its_order() -> None:
    assert (*TABLES, "notes") == NAMES


@pytest.mark.parametrize(
    ("output", "titles", "lines"),
    [
        ("text", ["pool", "interfaces", "nodes", "limit"], [["gpu", "8", "4", ""]]),
        ("page", ["pool", "nodes", "sum"], [["gpu", "4", "2 + 2"], ["cpu", "3", "1 + 2"]]),
    ],
)
def test_an_output_has_its_own_columns_and_rows_and_a_page_no_empty_column(
    output: Output, titles: list[str], lines: list[list[str]]
) -> None:
    table = TABLE.of(output)

    assert [column.title for column in table.columns] == titles
    assert [[plain(cell) for cell in line.cells] for line in table.rows] == lines


def test_a_part_of_a_table_has_the_rows_of_some_tones() -> None:
    part = TABLE.part("Those that fit.", "good")

    assert [plain(line.cells[0]) for line in part.rows] == ["gpu"]
    assert part.caption == "Those that fit."
