"""Errors of an app, which the `torchx` command line prints without a traceback."""

from collections.abc import Generator, Iterable
from contextlib import contextmanager

from torchx.specs.finder import ComponentValidationException

from ultrascale.errors import UltrascaleError


class AppError(UltrascaleError, ComponentValidationException):
    """An app cannot be run. Carries one line for each mistake, all of them at once.

    Attributes:
        mistakes: Lines of the form ``key: what is wrong, got VALUE; what to do``.
    """

    def __init__(self, mistakes: Iterable[str]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(self.mistakes))


@contextmanager
def told() -> Generator[None]:
    """Raise every error that a user can cause as an `AppError`."""
    try:
        yield
    except AppError:
        raise
    except UltrascaleError as error:
        raise AppError(str(error).splitlines()) from error
