"""Facts of an account as keys of a cluster file, so that synthesis asks no account."""

from ultrascale.record.section import cautions, network_section
from ultrascale.record.update import Update, updated

__all__ = ["Update", "cautions", "network_section", "updated"]
