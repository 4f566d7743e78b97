"""What parts of a chart's values become of a job, put together."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ultrascale import config

TEMPLATES = "jobTemplates"
Places = Mapping[config.KeyPath, config.KeyPath]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Some keys of a job.

    Attributes:
        keys: The keys.
        places: Keys of the values behind them.
        mistakes: What is wrong with the values, at their own keys.
        notes: What of the values does not hold, by their keys.
    """

    keys: Mapping[str, object] = field(default_factory=dict[str, object])
    places: Places = field(default_factory=dict[config.KeyPath, config.KeyPath])
    mistakes: tuple[config.Mistake, ...] = ()
    notes: Mapping[config.KeyPath, str] = field(default_factory=dict[config.KeyPath, str])


def joined(*pieces: Piece) -> Piece:
    """Return ``pieces`` as one."""
    return Piece(
        keys={key: value for piece in pieces for key, value in piece.keys.items()},
        places={key: place for piece in pieces for key, place in piece.places.items()},
        mistakes=tuple(mistake for piece in pieces for mistake in piece.mistakes),
        notes={at: note for piece in pieces for at, note in piece.notes.items()},
    )
