"""Long variants of tests: ``SOAK=1 make test`` runs them, and the suite their short ones."""

import os

_SOAK = int(os.environ.get("SOAK", "0"))
LONG = _SOAK > 0
"""Whether the long variants are asked for."""


def cases(few: int, more: int) -> int:
    """Return the number of drawn cases: ``few``, with SOAK=1 ``more``, above that SOAK itself."""
    return _SOAK if _SOAK > 1 else more if LONG else few
