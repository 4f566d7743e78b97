"""What a user can put right."""


class TrainingError(Exception):
    """A mistake in arguments, data or set-up; each line of the message says what to change."""
