"""Which pools have EFA interfaces, as far as the file alone can say."""

from ultrascale import catalog
from ultrascale.config.pools import Pool


def could_have_efa(pool: Pool) -> bool:
    """Return whether every type takes EFA interfaces and some type has accelerators."""
    specs = [catalog.lookup(name) for name in pool.instance_types]
    taken = all(spec.knows("efa_cards") and spec.efa_cards for spec in specs)
    return taken and any(spec.accelerator for spec in specs)


def has_efa(pool: Pool) -> bool:
    """Return whether the nodes of ``pool`` get EFA interfaces."""
    one = len(pool.instance_types) == len(pool.zones) == 1
    return pool.efa == "all" or (pool.efa == "auto" and one and could_have_efa(pool))
