"""Rules of the file as a whole."""

from ultrascale.config._errors import Mistake, Mistakes, dotted
from ultrascale.config._parts import Readable
from ultrascale.config._rules import rule
from ultrascale.config.hyperpod import Team
from ultrascale.config.pipeline import Stage
from ultrascale.config.pools import Pool
from ultrascale.config.scheduling import Queue
from ultrascale.config.storage import Lustre


@rule
def names_are_unique(
    pools: Readable[Pool],
    file_systems: Readable[Lustre],
    queues: Readable[Queue],
    teams: Readable[Team],
    stages: Readable[Stage],
) -> Mistakes:
    for items in (pools, file_systems, queues, teams, stages):
        seen: dict[str, str] = {}
        for placed in items.placed:
            name = placed.item.name
            if name in seen:
                wrong = f"the name of {seen[name]} too"
                yield Mistake((*placed.at, "name"), wrong, "choose another")
            seen.setdefault(name, dotted(placed.at))
