"""Says in the user's words which fact about an instance type no source states."""

from collections.abc import Iterable, Iterator, Mapping

from ultrascale import catalog
from ultrascale.errors import CatalogError

_ABOUT_TYPES: Mapping[str, str] = {
    "architecture": "which architecture it has",
    "capacity_block": "whether Capacity Blocks are sold for it",
    "efa_cards": "which of its network cards take EFA interfaces",
    "enis_card0": "how many interfaces its network card 0 takes",
    "ipv4_per_eni": "how many addresses its interfaces hold",
    "nvme_total_gb": "how much NVMe storage it has",
    "placement_group": "whether it may be in a cluster placement group",
    "prefix_delegation": "whether its interfaces take prefixes",
    "vcpus": "how many vCPUs it has",
}
_ABOUT_ACCELERATORS: Mapping[str, str] = {
    "count": "how many whole accelerators it has",
    "kind": "which accelerators it has",
}


def unknown_fact(error: CatalogError, instance_types: Iterable[object]) -> str:
    """Return which fact ``error`` misses, or its own text where it is about something else."""
    for name in instance_types:
        if name in catalog.INSTANCE_TYPES:
            for text, words in _missing(catalog.lookup(str(name))):
                if text == str(error):
                    return f"no source says of {name} {words}"
    return str(error)


def _missing(spec: catalog.InstanceType) -> Iterator[tuple[str, str]]:
    """Yield the catalog's text about each fact, and ours."""
    for fact, words in _ABOUT_TYPES.items():
        yield spec.why_unknown(fact), words
    accelerator = spec.accelerator
    if accelerator is not None:
        for fact, words in _ABOUT_ACCELERATORS.items():
            yield accelerator.why_unknown(fact), words
