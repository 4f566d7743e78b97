"""Rules against what the cluster file may say already, although nothing builds it yet."""

from collections.abc import Iterator

from ultrascale import config
from ultrascale.catalog import regions

Mistakes = Iterator[config.Mistake]

_WRONG = "not supported yet"


def region_is_built(identity: config.Identity) -> Mistakes:
    """Yield a Region of China, where names of endpoints and of service principals differ."""
    if regions.lookup_region(identity.region).partition == "aws-cn":
        wrong = f"Regions of China are {_WRONG}"
        todo = "use a Region of another partition"
        yield config.refuse("region", wrong, todo, code="unsupported")


def efa_is_built(file_system: config.Lustre) -> Mistakes:
    """Yield a file system over EFA."""
    if file_system.efa:
        yield config.refuse("efa", _WRONG, "use false", code="unsupported")


def without_moot(mistakes: list[config.Mistake]) -> list[config.Mistake]:
    """Return ``mistakes`` without those that are gone once what is not supported is changed.

    To mend them first would lead the user into the next refusal.
    """
    places = [mistake.at for mistake in mistakes if mistake.code == "unsupported"]
    return [
        mistake
        for mistake in mistakes
        if mistake.code == "unsupported"
        or not any(
            mistake.at[: len(place)] == place or mistake.rests_on == place for place in places
        )
    ]
