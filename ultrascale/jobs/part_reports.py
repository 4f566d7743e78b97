"""State of what parts have for a job, as `status` and `submit` say it."""

from collections.abc import Iterator

from ultrascale.cluster_api.server import Cluster
from ultrascale.core.table import all_parts
from ultrascale.frozen import Frozen
from ultrascale.jobs.manifests import JobManifests
from ultrascale.jobs.status import JobStatus


class PartReport(Frozen):
    """State of what a part has for a job."""

    name: str  # Key in `status --json`
    document: Frozen  # Its value there
    lines: tuple[str, ...]  # Lines below the job, in plain words


def reports_of(cluster: Cluster, job: JobStatus) -> Iterator[PartReport]:
    """Yield what parts say of a job.

    Raises:
        ClusterError: The API server cannot be reached.
    """
    for part in all_parts():
        if part.has_reports:
            report: PartReport | None = part.module("report").report_of(cluster, job)
            if report is not None:
                yield report


def warnings_of(cluster: Cluster, job: JobManifests) -> Iterator[str]:
    """Yield what parts say against a job that is to be sent.

    Raises:
        ClusterError: The API server cannot be reached.
    """
    for part in all_parts():
        if part.has_reports:
            lines: Iterator[str] = part.module("report").warnings_of(cluster, job)
            yield from lines
