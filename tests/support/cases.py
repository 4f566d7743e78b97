"""One test for many cases that are alike."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest


def for_each(
    cases: Mapping[str, Any] | Iterable[Any],
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make one test of a check that runs for each case; it fails with the names of those that fail.

    A test apiece costs pytest and its workers more than a check of a row takes.

    Args:
        cases: The cases by their names, or cases that are names; a tuple is several arguments.
    """
    named: dict[str, Any]
    named = {**cases} if isinstance(cases, Mapping) else {str(case): case for case in cases}

    def decorate(check: Callable[..., None]) -> Callable[..., None]:
        # Not by functools.wraps: pytest would take the arguments of the check for fixtures.
        def test(*instance: Any) -> None:
            failures: list[str] = []
            for name, case in named.items():
                try:
                    check(*instance, *(case if isinstance(case, tuple) else (case,)))
                except AssertionError as error:
                    failures.append(f"{name}: {error}")
                except Exception as error:
                    error.add_note(name)
                    raise
            if failures or not named:
                raise AssertionError("\n".join(failures) or "there are no cases")

        test.__name__, test.__qualname__ = check.__name__, check.__qualname__
        test.__module__, test.__doc__ = check.__module__, check.__doc__
        return test

    return decorate


def rows(names: str, table: Mapping[str, Any]) -> pytest.MarkDecorator:
    """Parametrize a test, which may take fixtures, by a table of rows with their ids."""
    return pytest.mark.parametrize(names, table.values(), ids=table)
