"""Errors that a user can solve."""


class TrainingError(Exception):
    """A mistake in arguments, data or set-up; each line of the message says what to change."""
