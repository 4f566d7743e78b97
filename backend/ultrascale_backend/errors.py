"""Errors of a request beside those of `ultrascale`, and lines about mistakes in a document."""

import difflib
from collections.abc import Collection, Iterable, Iterator

import pydantic


class BadRequestError(Exception):
    """Error: a request is wrong; carries one line for each mistake, all of them at once."""

    def __init__(self, mistakes: Iterable[str]) -> None:
        # Lines of the form ``key.path: what is wrong, got VALUE; what to do``
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(self.mistakes))


class KeyReusedError(Exception):
    """Error: an idempotency key came with another request before, or from an unknown caller."""


class ForbiddenError(Exception):
    """Error: a caller lacks the right for its request; carries one line for each reason."""

    def __init__(self, reasons: Iterable[str]) -> None:
        self.reasons = tuple(reasons)  # Lines about the missing rights
        super().__init__("; ".join(self.reasons))


class UnknownCallerError(Exception):
    """Error: a token belongs to no caller that the process knows."""


class LimitedError(Exception):
    """Error: a caller or an address exceeds its rate limit."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds  # Time to wait
        super().__init__(f"again in {seconds:.1f} s")


class IdentityUnavailableError(Exception):
    """Error: no judge can identify the caller of a token now."""


class UnavailableError(Exception):
    """Error: the database could not be reached for as long as a client should wait."""


_LONGEST = 100


def form_mistakes(error: pydantic.ValidationError) -> Iterator[str]:
    """Yield one line for each error that pydantic reports."""
    for item in error.errors(include_url=False):
        where = ".".join(str(part) for part in item["loc"])
        if item["type"] == "extra_forbidden":
            yield f"{where}: unknown key; leave it out"
            continue
        if item["type"] == "missing":
            yield f"{where}: missing; add it"
            continue
        wrong = item["msg"][:1].lower() + item["msg"][1:]
        got = repr(item["input"])
        shown = got if len(got) <= _LONGEST else f"{got[:_LONGEST]}…"
        yield ": ".join(part for part in (where, f"{wrong}, got {shown}") if part)


def near(name: str, known: Collection[str]) -> str:
    """Return the remedy for an unknown ``name``: its nearest match, or all known names."""
    match = difflib.get_close_matches(name, known, n=1)
    if match:
        return f"did you mean {match[0]}?"
    return f"known: {', '.join(sorted(known))}" if known else "there is none"
