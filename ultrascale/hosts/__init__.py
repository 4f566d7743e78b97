"""Hosts that synthesized files name, for networks without a way out."""

from ultrascale.hosts.reader import HostUse, read_document, read_file, read_hosts

__all__ = ["HostUse", "read_document", "read_file", "read_hosts"]
