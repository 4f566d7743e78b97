"""What the cluster file may say already, although nothing builds it yet."""

from collections.abc import Iterator

from ultrascale import config
from ultrascale.catalog import regions

Mistakes = Iterator[config.Mistake]

_WRONG = "not supported yet"


def _region_is_built(region: str) -> Mistakes:
    if regions.lookup_region(region).partition == "aws-cn":
        # Names of endpoints and service principals differ there.
        wrong = f"Regions of China are {_WRONG}"
        yield config.refuse("region", wrong, "use a Region of another partition")


def _efa_is_built(efa: bool) -> Mistakes:
    if efa:
        yield config.refuse("efa", _WRONG, "use false")


RULES: config.Rules = {
    config.Cluster: (_region_is_built,),
    config.Lustre: (_efa_is_built,),
}


def is_moot(mistake: config.Mistake, unsupported: config.Mistake) -> bool:
    """Return whether ``mistake`` is gone once what is ``unsupported`` is changed.

    So is all that stands within it, and all that rests on it: to mend that first would lead the
    user into the next refusal.
    """
    place = unsupported.at
    return mistake.at[: len(place)] == place or place in mistake.judged
