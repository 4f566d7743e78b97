"""Long variants of tests: ``SOAK=1 make test`` runs them, and the suite their short ones."""

import os

LONG = os.environ.get("SOAK", "0") != "0"
"""Whether the long variants are asked for."""
