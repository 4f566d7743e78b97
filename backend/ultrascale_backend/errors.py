"""Errors of a request, beside those of `ultrascale`."""

from collections.abc import Iterable


class BadRequestError(Exception):
    """A request is wrong. Carries one line for each mistake, all of them at once.

    Attributes:
        mistakes: Lines of the form ``key.path: what is wrong, got VALUE; what to do``.
    """

    def __init__(self, mistakes: Iterable[str]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(self.mistakes))


class KeyReusedError(Exception):
    """An idempotency key came again with another request."""


class UnavailableError(Exception):
    """The database could not be reached for as long as a client should wait."""
