"""The table of parts: subjects that a cluster may have, a folder each."""

from collections.abc import Sequence

from ultrascale import config
from ultrascale.core.part import Part
from ultrascale.parts.backend import PART as BACKEND
from ultrascale.parts.dev.part import PART as DEV
from ultrascale.parts.etcd import PART as ETCD
from ultrascale.parts.fabric.part import PART as FABRIC
from ultrascale.parts.front import PART as FRONT
from ultrascale.parts.hyperpod import PART as HYPERPOD
from ultrascale.parts.keys import PART as KEYS
from ultrascale.parts.kueue import PART as KUEUE
from ultrascale.parts.mirror.part import PART as MIRROR
from ultrascale.parts.models.part import PART as MODELS
from ultrascale.parts.observability import PART as OBSERVABILITY
from ultrascale.parts.pipeline import PART as PIPELINE
from ultrascale.parts.ray import PART as RAY
from ultrascale.parts.recipes.part import PART as RECIPES
from ultrascale.parts.services import PART as SERVICES
from ultrascale.parts.volcano import PART as VOLCANO
from ultrascale.plan.model import PlannedPart

PARTS: Sequence[Part[config.Section, PlannedPart]] = (
    PIPELINE,
    KEYS,
    MIRROR,
    VOLCANO,
    KUEUE,
    RAY,
    SERVICES,
    FRONT,
    OBSERVABILITY,
    RECIPES,
    MODELS,
    ETCD,
    DEV,
    FABRIC,
    BACKEND,
    HYPERPOD,
)
"""Every part, in the order of the file's keys, of the tables and of the checks."""
