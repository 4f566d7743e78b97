"""The change guard: what a deployment would replace, delete or roll, told before it is made."""

from ultrascale.guard.assembly import read_assembly, read_assembly_of
from ultrascale.guard.comparison import compare
from ultrascale.guard.model import Change, Changes, PropertyChange, RolledPool
from ultrascale.guard.sources import compare_deployed, other_clusters, synthesize

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
    "synthesize",
]
