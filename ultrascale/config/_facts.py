"""The facts of an instance type that no source states, in the user's words."""

from collections.abc import Mapping

from ultrascale.errors import CatalogError, UnknownFactError

_WORDS: Mapping[str, str] = {
    "architecture": "which architecture it has",
    "capacity_block": "whether Capacity Blocks are sold for it",
    "efa_cards": "which of its network cards take EFA interfaces",
    "enis_card0": "how many interfaces its network card 0 takes",
    "ipv4_per_eni": "how many addresses its interfaces hold",
    "nvme_total_gb": "how much NVMe storage it has",
    "placement_group": "whether it may be in a cluster placement group",
    "prefix_delegation": "whether its interfaces take prefixes",
    "vcpus": "how many vCPUs it has",
    "accelerator.count": "how many whole accelerators it has",
    "accelerator.kind": "which accelerators it has",
}


def unknown_fact(error: CatalogError) -> str:
    """Return the fact that ``error`` misses, or its own text where it is about something else."""
    if isinstance(error, UnknownFactError) and error.fact in _WORDS:
        return f"no source says of {error.entry} {_WORDS[error.fact]}"
    return str(error)
