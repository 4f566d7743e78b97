"""Each resource, output and object of the examples and of their jobs is as it was recorded.

So a right, a toleration, a count or a quota that changes by accident is seen, whoever asserts it.
"""

import pytest

from tests.support.assembly import Assembly
from tests.support.rendered import HASHES, texts

FIXTURES = {
    "auto-mode": "auto",
    "existing-estate": "estate",
    "hybrid-hyperpod": "hybrid",
    "llm-kueue": "llm",
    "mixed-capacity": "mixed",
    "serving": "serving",
    "trainium-bert": "trainium",
    "ultra-100k": "ultra",
}


@pytest.mark.parametrize("name", FIXTURES)
def test_nothing_that_is_deployed_changes_unseen(name: str, request: pytest.FixtureRequest) -> None:
    """`python -m tests.support.rendered --record` writes the hashes anew, to be reviewed."""
    assembly: Assembly = request.getfixturevalue(FIXTURES[name])
    changes = HASHES.changes(texts(name, assembly), prefix=f"{name} ")
    assert not changes, changes[:20_000]
