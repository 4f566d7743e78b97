"""Tables of needs: each figure is the one that `plan --json` prints at its place."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from tests.report.test_page import CLUSTERS, document_of, needs_of
from tests.support.cases import for_each
from tests.support.pages import at_path
from ultrascale.catalog.tables import read_rows
from ultrascale.plan.model import ClusterNeeds
from ultrascale.plan.needs import tables
from ultrascale.plan.needs.report import needs_table
from ultrascale.plan.needs.tables import Column, Datum, Row, Table, plain, table_of

COLUMNS = read_rows(str(Path(tables.__file__).with_name("columns.csv")), Column)
# Tables of the change guard, and columns that services have where one has a model.
OTHERS = ("changes", "nodes", "models")
NAMES = [name for name in dict.fromkeys(column.table for column in COLUMNS) if name not in OTHERS]


def all_tables(needs: ClusterNeeds) -> Iterator[Table]:
    """Yield each table of a cluster."""
    return (needs_table(needs, name) for name in NAMES)


@for_each(CLUSTERS)
def test_each_cell_of_a_figure_names_its_place_in_the_json(cluster: str) -> None:
    document = document_of(cluster)

    figures = [
        part
        for table in all_tables(needs_of(cluster))
        for line in table.lines
        for cell in line
        for part in cell
        if isinstance(part, Datum)
    ]
    assert len(figures) > 100
    for figure in figures:
        value = at_path(document, figure.path)
        is_time = isinstance(figure.value, datetime)
        assert value == (figure.machine if is_time else figure.value), figure.path


def test_each_column_has_content_of_some_cluster() -> None:
    """A key that no need has would leave its column empty for all of them."""
    filled = {
        (column.table, column.key)
        for cluster in CLUSTERS
        for table in all_tables(needs_of(cluster))
        for column, cells in zip(table.columns, zip(*table.lines, strict=True), strict=False)
        if any(plain(cell) not in ("", column.empty) for cell in cells)
    }

    shown = {table for table, _ in filled}
    assert len(shown) > 15
    wanted = {(column.table, column.key) for column in COLUMNS if column.table in shown}
    # Storage of another account, and a window with something to say, are in no file of `clusters/`.
    assert wanted - filled == {("storage", "owner"), ("windows", "note")}


def test_an_output_has_its_own_columns_and_rows_and_a_page_no_empty_column() -> None:
    table = table_of(
        ["items"],
        [
            Row("", {"name": "disks", "quantity": "8", "usd_per_month": "4"}, tone="good"),
            Row("", {"name": "alarms", "usd_per_month": "3"}, tone="bad", output="page"),
        ],
    )

    text, page, part = table.text(), table.page("All."), table.page("Those that fit.", "good")

    assert [column.title for column in text.columns][:3] == ["beside nodes", "paid", "quantity"]
    assert [[plain(cell) for cell in line[:3]] for line in text.lines] == [["disks", "", "8"]]
    assert [column.title for column in page.columns] == ["beside nodes", "USD/month"]
    assert [[plain(cell) for cell in line] for line in page.lines] == [
        ["disks", "4"],
        ["alarms", "3"],
    ]
    assert [plain(line[0]) for line in part.lines] == ["disks"]
    assert part.caption == "Those that fit."
