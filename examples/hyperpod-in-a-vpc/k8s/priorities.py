"""PriorityClasses of the team, highest first."""

PRIORITIES = ("urgent", "normal")
