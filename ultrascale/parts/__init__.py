"""The table of parts: subjects that a cluster may have, a folder each."""

from collections.abc import Sequence

from ultrascale import config
from ultrascale.core.part import Part
from ultrascale.parts import keys
from ultrascale.plan.model import PlannedPart

PARTS: Sequence[Part[config.Section, PlannedPart]] = (keys.PART,)
"""Every part, in the order of the file's keys, of the tables and of the checks."""
