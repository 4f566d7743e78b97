"""Plans of the cluster files, to the letter."""

from pathlib import Path

import pytest

from tests.support.hashed import Hashed
from tests.support.plan_golden import STATUSES, TABLES, printed, recorded_answers, tables


@pytest.mark.parametrize("name", STATUSES)
def test_the_answer_on_a_cluster_file_is_the_one_that_was_reviewed(name: str) -> None:
    text, status = printed(name)

    assert text == recorded_answers()[name]
    assert status == STATUSES[name]


@pytest.mark.parametrize("name", STATUSES)
def test_each_table_of_a_cluster_file_is_the_one_that_was_reviewed(name: str) -> None:
    """`python -m tests.support.plan_golden` records what it says now: read what changes."""
    changes = TABLES.changes(tables(name), prefix=f"{name} ")

    if changes:
        pytest.fail(changes, pytrace=False)


def test_a_table_that_changes_is_shown_and_its_difference_where_the_old_one_is_kept(
    tmp_path: Path,
) -> None:
    texts = {"a pools": "nodes\n4\n", "a money": "9\n", "b pools": "1\n"}
    hashed = Hashed(tmp_path / "tables.txt", tmp_path / "kept")
    hashed.record(texts)
    assert hashed.changes(texts) == ""
    assert hashed.changes({"b pools": "1\n"}, prefix="b ") == ""

    changed = {"a pools": "nodes\n5\n", "a queues": "2\n", "b pools": "1\n"}

    difference = "--- recorded\n+++ now\n@@ -1,2 +1,2 @@\n nodes\n-4\n+5\n"
    assert hashed.changes(changed) == (
        f"== a money: is gone\n\n== a pools: changed\n{difference}\n== a queues: is now\n2\n"
    )
    elsewhere = Hashed(tmp_path / "tables.txt", tmp_path / "nothing")
    assert "== a pools: is now\nnodes\n5\n" in elsewhere.changes(changed)
    # Kept texts of other hashes are no base to compare with.
    hashed.file.write_text(hashed.file.read_text().replace("b pools", "c pools"))
    assert "== a pools: is now\nnodes\n5\n" in hashed.changes(changed)
