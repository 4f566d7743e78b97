"""A test of many cases fails where one of them does, and names it."""

import pytest

from tests.support.cases import for_each


def test_each_case_that_fails_is_named() -> None:
    @for_each({"one": 1, "two": 2, "three": 3})
    def check(number: int) -> None:
        assert number % 2 == 0, "odd"

    with pytest.raises(AssertionError) as failure:
        check()

    names = [line.partition(": odd")[0] for line in str(failure.value).splitlines()]
    assert [name for name in names if name in ("one", "two", "three")] == ["one", "three"]


def test_an_error_names_its_case() -> None:
    @for_each([("a", 1), ("b", 0)])
    def check(_: str, number: int) -> None:
        assert 1 // number

    with pytest.raises(ZeroDivisionError) as failure:
        check()

    assert failure.value.__notes__ == ["('b', 0)"]


def test_no_case_is_a_failure() -> None:
    @for_each([])
    def check(_: object) -> None:
        """Nothing."""

    with pytest.raises(AssertionError, match="no cases"):
        check()
