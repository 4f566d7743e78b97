"""The tables of `ultrascale plan`, by name."""

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
    "keys",
    "storage",
    "money",
    "notes",
)
"""Names of the tables, in the order in which they are printed."""
