"""Hosts that synthesized files name, for networks without a way out."""

from ultrascale.hosts.reader import HostUse, read_document, read_file, read_hosts
from ultrascale.hosts.ways import HostWay, Way, ways_to

__all__ = [
    "HostUse",
    "HostWay",
    "Way",
    "read_document",
    "read_file",
    "read_hosts",
    "ways_to",
]
