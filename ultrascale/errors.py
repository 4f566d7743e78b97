"""The errors that a user can cause. The command line prints them and exits 1, or 64 for wrong use.

Everything else is a bug.

UltrascaleError
├── CatalogError     the catalog has no such entry, or does not know the value asked for
│   └── UnknownFactError no source states a fact of an entry that the catalog has
├── ConfigError      the cluster file is wrong, or asks for what is not supported
├── ArgumentError    arguments of a construct of `ultrascale_constructs.public` are wrong
├── QuestionError    an argument of a command is missing, wrong or contradicts another
│   └── UsageError   arguments that are wrong whatever the file, the account and the cluster say
├── InterruptedWorkError the user stopped a command that had begun to change something
├── ClusterError     the cluster cannot be reached, refuses, or lacks what a job needs
│   └── RefusedError the API server answered with a status that is no success
├── YamlError        a file is not read as YAML; see `ultrascale.yaml_reader`
└── AccountError     AWS cannot be asked: no credentials, or they are not accepted
    └── UnansweredError AWS refused a request, or did not answer it
"""

import errno
import re
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Literal

from msgspec.structs import astuple, replace

from ultrascale.frozen import Frozen

Severity = Literal["error", "warning", "note"]


# User and password of a URL. Passwords may hold any mark; a port is none.
_CREDENTIALS = re.compile(r"(?<=://)(?:[^\s/]*|[^\s/:@]*:(?![0-9]+/)\S*)@")


def masked(text: str) -> str:
    """Return ``text`` without the users and passwords of its URLs: logs keep messages."""
    return _CREDENTIALS.sub("***@", text) if "@" in text else text


def printable(text: str) -> str:
    """Return ``text`` with characters escaped that a terminal obeys or hides, and masked."""
    text = masked(text)
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else ascii(character)[1:-1] for character in text
    )


class Span(Frozen):
    """Part of a file. Lines and columns count from 1, columns in characters."""

    line: int  # Line of its first character
    column: int  # Column of its first character
    # Line of the character after its last character; None where only the start is known.
    end_line: int | None = None
    end_column: int | None = None  # Column of that character


class Diagnostic(Frozen, eq=False):
    """A mistake or a warning with its place in a file; the rule does not count for equality."""

    message: str  # What is wrong
    file: str = ""  # The file, as the user named it; empty without a file
    span: Span | None = None  # Place in the file; None where no place is meant
    key: str = ""  # Path of the key, as ``pools[p5].efa``; empty for the whole file
    value: str = ""  # The value as the file spells it; empty where ``message`` names it
    fix: str = ""  # What to do; empty where ``message`` says so
    code: str = "rule"  # Name of the broken rule, or a word for a mistake outside of rules
    severity: Severity = "error"  # ``error`` where the file is refused

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Diagnostic) and self._without_code == other._without_code

    def __hash__(self) -> int:
        return hash(self._without_code)

    @property
    def _without_code(self) -> tuple[object, ...]:
        return astuple(replace(self, code=""))

    @property
    def text(self) -> str:
        """The sentence that a user reads, without the place."""
        text = f"{self.message}, got {self.value}" if self.value else self.message
        return masked(f"{text}; {self.fix}" if self.fix else text)

    @property
    def keyed(self) -> str:
        """The line that a user reads, without the file."""
        return f"{self.key}: {self.text}" if self.key else self.text

    def __str__(self) -> str:
        place = self.file
        if place and self.span is not None:
            place = f"{place}:{self.span.line}:{self.span.column}"
        severity = "" if self.severity == "error" else self.severity
        return ": ".join(part for part in (place, severity, self.keyed) if part)


class UltrascaleError(Exception):
    """Base of every error that a user can fix."""


_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}


def no_room(error: Exception, todo: str) -> str:
    """Return the sentence of an error of a full disk; empty for another error.

    Args:
        error: The error; those of jsii hold the name that Node.js has for it.
        todo: What to do about it.
    """
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{(error.strerror or str(error)).lower()}; {todo}"
    named = re.match(r"(?:ENOSPC|EDQUOT): ([^\n]*)", str(error))
    return f"{named[1]}; {todo}" if isinstance(error, RuntimeError) and named else ""


class CatalogError(UltrascaleError, LookupError):
    """The catalog has no such entry, or the entry lacks the value asked for."""


class UnknownFactError(CatalogError):
    """No source states a fact of an entry that the catalog has."""

    def __init__(self, message: str, *, entry: str, fact: str) -> None:
        self.entry = entry  # Name of the entry, such as an instance type
        self.fact = fact  # Name of the fact
        super().__init__(message)


class ConfigError(UltrascaleError):
    """A cluster file, or another file of the user, is wrong; carries all mistakes at once.

    Args:
        mistakes: The mistakes, as lines where they have no place in a file; equal ones are merged.
    """

    def __init__(self, mistakes: Iterable[str | Diagnostic]) -> None:
        # The mistakes
        self.diagnostics = tuple(
            dict.fromkeys(
                Diagnostic(message=mistake) if isinstance(mistake, str) else mistake
                for mistake in mistakes
            )
        )
        # A line for each mistake, ``file:line:column: key.path: what is wrong, got VALUE; what to
        # do``
        self.mistakes = tuple(
            dict.fromkeys(printable(str(diagnostic)) for diagnostic in self.diagnostics)
        )
        super().__init__("\n".join(self.mistakes))


class ArgumentError(UltrascaleError, ValueError):
    """Arguments of a construct are wrong. Carries one line for each mistake, all at once."""

    def __init__(self, mistakes: Iterable[str]) -> None:
        # Lines of the form ``construct: argument: what is wrong, got VALUE; what to do``
        self.mistakes = tuple(printable(line) for line in mistakes)
        super().__init__("\n".join(self.mistakes))


class QuestionError(UltrascaleError):
    """Raised for an incomplete, wrong or contradictory question to a command."""

    def __init__(self, mistakes: Iterable[str]) -> None:
        # Lines of the form ``--option: what is wrong, got VALUE; what to do``
        self.mistakes = tuple(printable(line) for line in mistakes)
        super().__init__("\n".join(self.mistakes))


class UsageError(QuestionError):
    """The arguments of a command are wrong, whatever the file, the account and the cluster say."""


class InterruptedWorkError(UltrascaleError):
    """The user stopped a command that had begun. The message says what state it left behind."""


class ClusterError(UltrascaleError):
    """The cluster cannot be reached, refuses, or lacks a job's needs; one line for each mistake."""

    def __init__(self, *lines: str) -> None:
        self.lines = lines
        super().__init__("\n".join(lines))


class RefusedError(ClusterError):
    """The API server answered a request with a status that is no success."""

    def __init__(self, line: str, *, status: int, reason: str, message: str) -> None:
        self.status = status  # HTTP status
        # Reason, in one word of Kubernetes, such as `AlreadyExists`; empty without a word
        self.reason = reason
        self.message = message  # Reason, in the server's or the webhook's own words
        super().__init__(line)


class AccountError(UltrascaleError):
    """AWS cannot be asked: credentials are missing or expired, or AWS is not reached."""


class UnansweredError(AccountError):
    """AWS refused a request or did not answer it, so that nothing is known."""

    def __init__(self, action: str, *, reason: str, code: str = "", denied: bool = False) -> None:
        self.action = action  # IAM's name of the request; of a denied request, the denied action
        self.reason = reason  # Why there is no answer
        self.code = code  # AWS's error code; empty where no answer came at all
        self.denied = denied  # Whether a policy has to allow `action`
        super().__init__(f"{action}: {reason}")


@contextmanager
def unless_gone(*codes: str) -> Generator[None]:
    """End the block where AWS answers by one of ``codes`` that what it asks for is not there.

    Raises:
        UnansweredError: AWS answered otherwise, or not at all.
    """
    try:
        yield
    except UnansweredError as error:
        if error.code not in codes:
            raise
