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
    """An idempotency key came again with another request, or of a caller that nobody knows."""


class ForbiddenError(Exception):
    """A caller may not do what it asks for. Carries a line for each reason.

    Attributes:
        reasons: What is missing.
    """

    def __init__(self, reasons: Iterable[str]) -> None:
        self.reasons = tuple(reasons)
        super().__init__("; ".join(self.reasons))


class UnknownCallerError(Exception):
    """A token names nobody whom the process knows."""


class LimitedError(Exception):
    """Somebody asks more often than one may.

    Attributes:
        seconds: Time to wait.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(f"again in {seconds:.1f} s")


class IdentityUnavailableError(Exception):
    """Nobody can say now whose a token is."""


class UnavailableError(Exception):
    """The database could not be reached for as long as a client should wait."""
