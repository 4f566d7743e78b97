"""Decisions that a plan makes for a cluster file, each with its reason."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A choice that the cluster file leaves open.

    Attributes:
        subjects: Parts of the cluster that it concerns: pools by their names.
        choice: What is done.
        reason: Why; empty where the choice says it.
    """

    subjects: tuple[str, ...]
    choice: str
    reason: str
