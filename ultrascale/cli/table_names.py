"""The tables of `ultrascale plan`, by name."""

from ultrascale.core.table import all_parts

PARTS = tuple(part.name for part in all_parts() if part.has_table)
"""Names of the tables of parts."""

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
    "callers",
    *PARTS,
    "storage",
    "money",
    "notes",
)
"""Names of the tables, in the order in which they are printed."""
