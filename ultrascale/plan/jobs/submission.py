"""Demands of whoever sends a job, and the rules of jobs that are sent."""

from datetime import datetime

from ultrascale import config
from ultrascale.frozen import Frozen
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.model import ClusterPlan


class Submission(Frozen):
    """Demands of whoever sends a job, beside the job itself."""

    account: str | None = None  # Account of the registry
    tier: str | None = None  # The tier that was chosen
    now: datetime | None = None  # Time of submission; None where windows are not checked
    values: bool = False  # Whether the job was translated from values of a chart


rule = config.Rules(given=(Submission, JobRequest, ClusterPlan))
"""Rules of a job that is sent, which those of templates leave out; places are the job's keys."""
