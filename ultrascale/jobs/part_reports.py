"""State of parts for a job, in `status` and `submit`."""

from collections.abc import Iterator

from ultrascale.cluster_api.server import Cluster
from ultrascale.core.table import all_parts
from ultrascale.frozen import Frozen
from ultrascale.jobs.manifests import JobManifests
from ultrascale.jobs.status import JobStatus


class PartReport(Frozen):
    """The report of one part on a job: a value of `status --json`, and lines."""

    name: str  # Key in `status --json`
    document: Frozen  # Its value there
    lines: tuple[str, ...]  # Lines below the job, in plain words


def reports_of(cluster: Cluster, job: JobStatus) -> Iterator[PartReport]:
    """Yield the reports of parts on a job.

    Raises:
        ClusterError: The API server cannot be reached.
    """
    for part in all_parts():
        if part.has_reports:
            report: PartReport | None = part.module("report").report_of(cluster, job)
            if report is not None:
                yield report


def warnings_of(cluster: Cluster, job: JobManifests) -> Iterator[str]:
    """Yield the warnings of parts on a job before it is sent.

    Raises:
        ClusterError: The API server cannot be reached.
    """
    for part in all_parts():
        if part.has_reports:
            lines: Iterator[str] = part.module("report").warnings_of(cluster, job)
            yield from lines
