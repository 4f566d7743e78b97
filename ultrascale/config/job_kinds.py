"""Kinds of jobs, told apart by their key `kind`."""

from typing import Annotated

from pydantic import Tag

from ultrascale.config._base import told_apart_by
from ultrascale.config.jobs import BatchJob, TrainingJob
from ultrascale.config.services import ServiceJob

AnyJob = TrainingJob | BatchJob | ServiceJob
StatedJob = Annotated[
    Annotated[TrainingJob, Tag("training")]
    | Annotated[BatchJob, Tag("batch")]
    | Annotated[ServiceJob, Tag("service")],
    told_apart_by("kind", "training", "batch", "service"),
]
