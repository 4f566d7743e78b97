"""Demands of a job's sender, and the rules of jobs that are sent."""

from datetime import datetime

from ultrascale import config
from ultrascale.frozen import Frozen
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.model import ClusterPlan


class Submission(Frozen):
    """Demands of a job's sender, beside the job itself."""

    account: str | None = None  # Account of the registry
    tier: str | None = None  # The chosen tier
    now: datetime | None = None  # Time of submission; None where windows are not checked
    values: bool = False  # Whether the job comes from a chart's values
    looks: bool = False  # Whether the files that the job reads are looked at


rule = config.Rules(given=(Submission, JobRequest, ClusterPlan))
"""Rules of a job that is sent, which those of templates leave out; places are the job's keys."""
