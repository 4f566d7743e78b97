import pytest

from tests.support.assembly import Assembly
from tests.support.goldens import FILES, golden, lines

FIXTURES = {
    "auto-mode": "auto",
    "hybrid-hyperpod": "hybrid",
    "mixed-capacity": "mixed",
    "trainium-bert": "trainium",
    "ultra-100k": "ultra",
}


def test_every_cluster_file_is_pinned() -> None:
    assert {*FIXTURES} == {*FILES}


@pytest.mark.parametrize("name", FILES)
def test_no_resource_or_object_of_a_cluster_file_changes_by_accident(
    name: str, request: pytest.FixtureRequest
) -> None:
    assembly: Assembly = request.getfixturevalue(FIXTURES[name])

    assert lines(assembly) == golden(name).read_text().splitlines()
