"""The guard on whole cluster files: a sample of what `python -m tests.support.guard_sweep` does."""

from typing import Any

import pytest

from tests.support.assembly import Assembly
from tests.support.cluster_keys import DOCUMENTS, Keys, changed
from tests.support.guard_sweep import made, unnoticed, whole
from ultrascale.guard import compare

FILE = DOCUMENTS["auto-mode"]


def test_a_file_that_stays_as_it_is_changes_nothing(auto: Assembly) -> None:
    changes = compare(whole(auto), whole(auto), region=auto.plan.region)

    assert (changes.resources, changes.pools, changes.unread) == ((), (), ())


@pytest.mark.parametrize(
    ("path", "value", "protected"),
    [
        (("network", "vpc_cidr"), ("10.8.0.0/16",), "VPC"),
        (("pools", 1), (), "NodePool"),
    ],
)
def test_no_protected_replacement_passes_unnoticed(
    auto: Assembly, path: Keys, value: tuple[Any, ...], protected: str
) -> None:
    later = made(changed(FILE, path, *value))

    assert list(unnoticed(auto, later)) == []
    changes = compare(whole(auto), whole(later), region=auto.plan.region)
    kinds = {each.type for each in changes.resources if each.protected}
    assert any(kind.endswith(f"::{protected}") for kind in kinds)
