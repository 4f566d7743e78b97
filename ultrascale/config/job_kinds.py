"""Kinds of jobs, told apart by their key `kind`."""

from typing import Annotated

from pydantic import Tag

from ultrascale.config._base import told_apart_by
from ultrascale.config.dev import DevJob
from ultrascale.config.jobs import BatchJob, TrainingJob
from ultrascale.config.services import ServiceJob

AnyJob = TrainingJob | BatchJob | ServiceJob | DevJob
StatedJob = Annotated[
    Annotated[TrainingJob, Tag("training")]
    | Annotated[BatchJob, Tag("batch")]
    | Annotated[ServiceJob, Tag("service")]
    | Annotated[DevJob, Tag("dev")],
    told_apart_by("kind", "training", "batch", "service", "dev"),
]
