"""The change guard: what a deployment would replace, delete or roll, told before it is made."""

from ultrascale.guard.assembly import read_assembly, read_assembly_of
from ultrascale.guard.comparison import compare
from ultrascale.guard.model import Change, Changes, PropertyChange, RolledPool
from ultrascale.guard.sources import as_deployed, other_clusters, read_deployed, synthesize

__all__ = [
    "Change",
    "Changes",
    "PropertyChange",
    "RolledPool",
    "as_deployed",
    "compare",
    "other_clusters",
    "read_assembly",
    "read_assembly_of",
    "read_deployed",
    "synthesize",
]
