"""The tables of `ultrascale plan`, by name."""

from pathlib import Path

_PARTS = Path(__file__).parent.parent / "parts"

# Parts are recognized by their files: the completion of names must import no part.
PARTS = tuple(sorted(file.parent.name for file in _PARTS.glob("*/needs.py")))
"""Names of the tables that only JSON has, of parts with a module `needs`."""
_OTHERS = tuple(sorted(file.stem.removesuffix("_needs") for file in _PARTS.glob("*/*_needs.py")))

TABLES = (
    "pools",
    "quotas",
    "subnets",
    "control-plane",
    "load",
    "launch",
    "placement",
    "checkpoints",
    "services",
    "queues",
    "windows",
    "repairs",
    "access",
    *_OTHERS,
    *PARTS,
    "storage",
    "money",
    "notes",
)
"""Names of the tables in the order of printing."""
