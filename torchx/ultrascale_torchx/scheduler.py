"""TorchX scheduler that submits an app like any other job of the cluster file.

Source: https://docs.pytorch.org/torchx/main/schedulers.html
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial

from torchx.runner import config as torchx_config
from torchx.schedulers.api import (
    DescribeAppResponse,
    ListAppResponse,
    Scheduler,
    Stream,
    filter_regex,
)
from torchx.specs import AppDef, AppDryRunInfo, CfgVal, Role, runopts
from torchx.workspace import WorkspaceMixin

from ultrascale import config
from ultrascale.cluster_api.server import Cluster
from ultrascale.frozen import Frozen
from ultrascale.jobs import JobManifests, cancellation, logs, prepare, status, submission, submitted
from ultrascale.jobs.manifests import as_yaml
from ultrascale_torchx import apps, options, progress
from ultrascale_torchx.errors import AppError, told
from ultrascale_torchx.foreign_scheduler import NAME
from ultrascale_torchx.options import Options

_log = logging.getLogger(__name__)


class Request(Frozen):
    """Manifests and options of a run that is sent."""

    manifests: JobManifests  # The job
    options: Options  # The run options

    def __str__(self) -> str:
        objects = self.manifests.objects
        return as_yaml(objects)


class UltrascaleScheduler(WorkspaceMixin[None], Scheduler[Mapping[str, CfgVal]]):
    """Scheduler of TorchX that sends apps to a cluster file's cluster, and reads their states."""

    def __init__(self, backend: str, session_name: str) -> None:
        super().__init__(backend, session_name)
        self._sent: dict[str, Options] = {}

    def schedule(self, dryrun_info: AppDryRunInfo[Request]) -> str:
        """Send the job, and return `NAMESPACE:NAME`.

        Raises:
            AppError: The cluster lacks something that the job needs, refuses the job, or cannot
                    be reached; no object of the job is left there.
        """
        request = dryrun_info.request
        job, chosen = request.manifests, request.options
        with told():
            cluster = Cluster.connected(chosen.kubeconfig, chosen.context)
            if chosen.context is None:
                submitted.same_cluster(chosen.cluster, cluster)
            report = partial(_log.info, "%s: %s", job.name)
            for note in submission.send(cluster, job, report):
                _log.warning("%s: %s", job.name, note)
        sent = progress.app_id(job.namespace, job.name)
        self._sent[sent] = chosen
        return sent

    def _submit_dryrun(self, app: AppDef, cfg: Mapping[str, CfgVal]) -> AppDryRunInfo[Request]:
        chosen = options.read(cfg)
        with told():
            found = apps.describe(app, chosen, config.load(chosen.cluster))
            manifests = prepare(
                chosen.cluster,
                found.job,
                precompile=found.precompile,
                account=chosen.account,
                now=datetime.now(UTC),
            )
        for note in manifests.notes:
            _log.warning("%s: %s", manifests.name, note)
        return AppDryRunInfo(Request(manifests=manifests, options=chosen), str)

    def _run_opts(self) -> runopts:
        return options.run_options()

    def build_workspace_and_update_role(
        self, role: Role, workspace: str, cfg: Mapping[str, CfgVal]
    ) -> None:
        """Refuse a workspace: the image would lack it, and the nodes would still cost money.

        Raises:
            AppError: Always.
        """
        todo = 'write --workspace="" and run an image that has your code'
        wrong = "no image is patched here, which would take a Docker daemon"
        raise AppError([f"workspace: {wrong}; leave out --workspace={workspace}: {todo}"])

    def describe(self, app_id: str) -> DescribeAppResponse | None:
        """Return the state of an app; None if it does not exist."""
        chosen = self._sent.get(app_id) or self._options_of_file()
        namespace, name = progress.place(app_id, chosen.namespace)
        with told():
            found = status.find_job(_cluster(chosen), namespace, name)
        return None if found is None else progress.response(found)

    def list(self, cfg: Mapping[str, CfgVal] | None = None) -> list[ListAppResponse]:
        """Return the jobs of the namespace, the newest first."""
        chosen = self._options_of_file(cfg)
        with told():
            found = status.jobs_in(_cluster(chosen), chosen.namespace)
        return [progress.listed(each) for each in found]

    def _cancel_existing(self, app_id: str) -> None:
        chosen = self._sent.get(app_id) or self._options_of_file()
        namespace, name = progress.place(app_id, chosen.namespace)
        with told():
            cluster = _cluster(chosen)
            objects = cancellation.objects_of(cluster, namespace, name)
            cancellation.cancel(cluster, namespace, objects)

    def log_iter(
        self,
        app_id: str,
        role_name: str,
        k: int = 0,
        regex: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        should_tail: bool = False,
        streams: Stream | None = None,
    ) -> Iterable[str]:
        """Return the lines of the ``k``-th pod.

        Raises:
            ValueError: A single stream is requested; Kubernetes keeps one log for both streams.
            AppError: The API server cannot be reached, or there is no such pod or log; the
                latter while the lines are read.
        """
        if streams not in (None, Stream.COMBINED):
            raise ValueError(f"Kubernetes keeps one log of both streams, got {streams}")
        chosen = self._sent.get(app_id) or self._options_of_file()
        namespace, name = progress.place(app_id, chosen.namespace)
        with told():
            choice = logs.Choice(index=k)
            lines = logs.lines(_cluster(chosen), namespace, name, choice, follow=should_tail)
        ended = _lines_with_ends(lines)
        return filter_regex(regex, ended) if regex else ended

    def _options_of_file(self, cfg: Mapping[str, CfgVal] | None = None) -> Options:
        """Return the options in `.torchxconfig`: TorchX passes none to these commands."""
        found = dict(cfg or {})
        torchx_config.apply(scheduler=self.backend, cfg=found)
        return options.read(found)


def _cluster(chosen: Options) -> Cluster:
    return Cluster.connected(chosen.kubeconfig, chosen.context)


def _lines_with_ends(lines: Iterable[str]) -> Iterator[str]:
    with told():
        for line in lines:
            yield f"{line}\n"


def create_ultrascale(session_name: str, **_: object) -> UltrascaleScheduler:
    """Return the scheduler under our own name, beside TorchX's `kubernetes`."""
    return UltrascaleScheduler(NAME, session_name)
