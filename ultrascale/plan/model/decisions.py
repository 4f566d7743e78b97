"""Decisions that a plan makes for a cluster file, each with its reason."""

from ultrascale.frozen import Frozen


class Decision(Frozen):
    """A choice that the cluster file leaves open."""

    subjects: tuple[str, ...]  # Parts of the cluster that it concerns: pools by their names
    choice: str  # The choice
    reason: str  # Its reason; empty where the choice says it
