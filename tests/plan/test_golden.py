"""Plans of the cluster files, to the letter."""

import pytest

from tests.support.plan_golden import OPTIONS, STATUSES, golden_file, printed


@pytest.mark.parametrize("kind", OPTIONS)
@pytest.mark.parametrize("name", STATUSES)
def test_the_plan_of_a_cluster_file_is_the_one_that_was_reviewed(name: str, kind: str) -> None:
    """`python -m tests.support.plan_golden` writes down what it says now: read what changes."""
    text, status = printed(name, kind)

    assert text == golden_file(name, kind).read_text()
    assert status == STATUSES[name]
