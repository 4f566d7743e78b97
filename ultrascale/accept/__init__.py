"""Acceptance of a live cluster: whether it is as its file says, and what was seen of it."""
