"""Copies of every image and chart of a cluster in a registry of its own: list, copy, check."""

from ultrascale.mirror.check import Finding, check_copies
from ultrascale.mirror.contents import Copy, list_copies
from ultrascale.mirror.copying import Outcome, copy_all

__all__ = ["Copy", "Finding", "Outcome", "check_copies", "copy_all", "list_copies"]
