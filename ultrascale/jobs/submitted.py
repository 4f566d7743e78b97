"""Jobs submitted from Python."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Unpack

from ultrascale import jobs
from ultrascale.cluster_api.identity import same_cluster
from ultrascale.cluster_api.server import Cluster
from ultrascale.documents import JsonObject
from ultrascale.errors import ClusterError
from ultrascale.jobs import cancellation, logs, status, submission, tiers
from ultrascale.jobs.manifests import JobManifests, Manifest, kind_of
from ultrascale.jobs.options import JobOptions
from ultrascale.jobs.progress import Followed, Progress, follow
from ultrascale.jobs.workloads import workload_kinds
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.jobs.tiers import Choice, Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedJob:
    """A job, sent to its cluster or (``dry_run``) only rendered."""

    manifests: JobManifests  # The manifests
    notes: tuple[str, ...]  # Notes for the user, each a sentence
    _cluster: Cluster | None = field(repr=False)

    @property
    def name(self) -> str:
        """The name of the job."""
        return self.manifests.name

    @property
    def namespace(self) -> str:
        """The namespace of the job."""
        return self.manifests.namespace

    @property
    def objects(self) -> tuple[Manifest, ...]:
        """The objects of the job, as they were sent."""
        return self.manifests.objects

    def status(self) -> status.JobStatus:
        """Return the state of the job, with its pods.

        Raises:
            ClusterError: The job is gone, or the API server refuses or cannot be reached.
        """
        return status.job_status(self._sent(), self.namespace, self.name)

    def logs(
        self, *, index: int = 0, follow: bool = False, previous: bool = False
    ) -> Iterator[str]:
        """Yield the lines of one pod's log.

        Args:
            index: Index of the pod in the job.
            follow: Whether to go on until the job has ended, through restarts of the pod.
            previous: Whether to read what its container wrote before its last restart.

        Raises:
            ClusterError: There is no such pod or log.
        """
        choice = logs.Choice(index=index, container=self.manifests.container, previous=previous)
        return logs.lines(self._sent(), self.namespace, self.name, choice, follow=follow)

    def wait(
        self,
        *,
        until_ended: bool = False,
        timeout_seconds: float | None = None,
        report: Callable[[Progress], None] = lambda _: None,
    ) -> Progress:
        """Wait until the job's pods run, or until it has ended.

        Args:
            until_ended: Whether to wait for its end. A service has none.
            report: Is called with each progress, at most twice a second.
            timeout_seconds: Longest wait; None for no limit.

        Raises:
            ClusterError: The job failed or is gone, or the time is over.
        """
        progress = follow(
            self._sent(),
            self.followed,
            until=lambda progress: progress.up and not until_ended,
            report=report,
            timeout_seconds=timeout_seconds,
        )
        if progress.state.result == "failed":
            raise ClusterError(failure(progress, self.namespace))
        return progress

    def cancel(self) -> tuple[str, ...]:
        """Delete the job, and return the deleted objects. Claims and their data stay.

        Raises:
            ClusterError: The job is gone, or something of it cannot be deleted.
        """
        cluster = self._sent()
        objects = cancellation.objects_of(cluster, self.namespace, self.name)
        return tuple(str(item) for item in cancellation.cancel(cluster, self.namespace, objects))

    @property
    def followed(self) -> Followed:
        """The job to follow."""
        kinds = {kind_of(manifest) for manifest in self.objects}
        return Followed(
            name=self.name,
            namespace=self.namespace,
            kinds=tuple(kind for kind in workload_kinds() if kind in kinds),
            container=self.manifests.container,
        )

    def _sent(self) -> Cluster:
        if self._cluster is None:
            raise ClusterError(f"job {self.name} was not submitted: dry_run was asked for")
        return self._cluster


def failure(progress: Progress, namespace: str) -> str:
    """Return a sentence about the failure of a job, with the commands that show more."""
    why = f": {progress.state.reason}" if progress.state.reason else ""
    where = f"{progress.name} -n {namespace}"
    return (
        f"job {progress.name} {progress.state.phase.lower()}{why}; see `ultrascale logs {where}` "
        f"and `ultrascale status {where}`"
    )


def submit(
    cluster_file: Path | str,
    job: str | Path | JsonObject,
    *,
    dry_run: bool = False,
    kubeconfig: Path | str | None = None,
    context: str | None = None,
    report: Callable[[str], None] = lambda _: None,
    **options: Unpack[JobOptions],
) -> SubmittedJob:
    """Send a job to its cluster, and return at once, or once its `preflight` has passed.

    Args:
        cluster_file: The cluster file.
        job: Name of one of the file's `jobs`, path of a file that holds one job, or the job. With
            ``values`` it is the name of one of their templates.
        dry_run: Send nothing; `SubmittedJob.objects` are the objects that would be sent.
        kubeconfig: Kubeconfig; by default `KUBECONFIG`, `~/.kube/config`, or in a pod its service
            account.
        context: Context of the kubeconfig; by default its current one.
        report: Is called with what a check of nodes does, which takes minutes.
        options: See `JobOptions`.

    Raises:
        ConfigError: The job or the cluster file has mistakes; one line for each.
        ClusterError: The cluster lacks something that the job needs, refuses it, or cannot be
            reached; one line for each reason. No object of the job stays in the cluster.
    """
    file = Path(cluster_file)
    cluster = None
    if not dry_run:
        cluster = Cluster.connected(Path(kubeconfig) if kubeconfig else None, context)
        options["account"] = options.get("account") or cluster.account
    manifests = jobs.prepare(
        file,
        job,
        choose=partial(_choose, cluster, file if context is None else None) if cluster else None,
        now=datetime.now(UTC),
        looks=cluster is not None,
        **options,
    )
    if cluster is None:
        return SubmittedJob(manifests=manifests, notes=manifests.notes, _cluster=None)
    if context is None:
        same_cluster(file, cluster)
    unchecked = submission.send(cluster, manifests, report)
    return SubmittedJob(manifests=manifests, notes=(*manifests.notes, *unchecked), _cluster=cluster)


def _choose(
    cluster: Cluster, file: Path | None, request: JobRequest, available: Sequence[Tier]
) -> Choice:
    """Choose a job's tier, after a check that the cluster is that of ``file``, if given."""
    if file is not None:
        same_cluster(file, cluster)
    return tiers.choose(cluster, request, available)
