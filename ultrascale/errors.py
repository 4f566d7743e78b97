"""The errors a user can cause. The command line prints them and exits 1; everything else is a bug.

UltrascaleError
├── CatalogError     the catalog has no such entry, or does not know the value asked for
└── ConfigError      the cluster file is wrong, or asks for what is not supported
"""

from collections.abc import Iterable


class UltrascaleError(Exception):
    """Base of every error that a user can fix."""


class CatalogError(UltrascaleError, LookupError):
    """The catalog has no such entry, or the entry does not say what was asked."""


class ConfigError(UltrascaleError):
    """The cluster file is wrong. Carries one line for each mistake, all of them at once.

    Attributes:
        mistakes: Lines of the form ``file: key.path: what is wrong, got VALUE; what to do``.
    """

    def __init__(self, mistakes: Iterable[str]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(self.mistakes))
