"""The change guard: lists, before a deployment, what it would replace, delete or roll."""

from ultrascale.guard.comparison import compare
from ultrascale.guard.model import Change, Changes, PropertyChange, RolledPool
from ultrascale.guard.sources import (
    compare_deployed,
    other_clusters,
    read_assembly,
    read_assembly_of,
    read_revision_of,
    synthesize,
)

__all__ = [
    "Change",
    "Changes",
    "PropertyChange",
    "RolledPool",
    "compare",
    "compare_deployed",
    "other_clusters",
    "read_assembly",
    "read_assembly_of",
    "read_revision_of",
    "synthesize",
]
