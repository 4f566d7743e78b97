"""Lives of facts that age."""

from datetime import date

import pytest

from ultrascale.catalog.lives import expiry, lives
from ultrascale.errors import CatalogError

SEEN = date(2026, 10, 6)


def test_a_fact_lives_as_long_as_its_kind_unless_it_has_a_row_or_an_end_of_its_own() -> None:
    assert expiry("ami-release", SEEN) == date(2026, 12, 5)
    assert expiry("image", SEEN, name="etcd") == date(2027, 4, 4)
    assert expiry("image", SEEN, name="python") == date(2027, 10, 6)
    assert expiry("end-of-support", SEEN, ends=date(2027, 3, 27)) == date(2027, 3, 27)
    with pytest.raises(CatalogError, match=r"got 'weather'.*: addon-build, advisories, "):
        expiry("weather", SEEN)


def test_every_life_has_days_and_a_reason_and_belongs_to_a_kind() -> None:
    for (kind, _), life in lives().items():
        assert (kind, "") in lives()
        assert life.days > 0
        assert life.why
