"""Dev pod of a person: start it, reach its notebook or a shell in it, and stop it.

`kubectl` forwards the port and attaches the terminal: the API server speaks protocols there that
change with its versions.

Sources:
    https://kubernetes.io/docs/reference/kubectl/generated/kubectl_port-forward/
    https://kubernetes.io/docs/reference/kubectl/generated/kubectl_exec/
"""

import getpass
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Unpack

from ultrascale import config, jobs
from ultrascale.cluster_api.identity import same_cluster
from ultrascale.cluster_api.objects import POD, label
from ultrascale.cluster_api.server import Cluster
from ultrascale.documents import look_up, mapping, number, parse_json, text
from ultrascale.errors import ClusterError, QuestionError, UsageError
from ultrascale.frozen import Frozen
from ultrascale.jobs import cancellation, logs, submission
from ultrascale.jobs.manifests import JobManifests
from ultrascale.jobs.options import JobOptions
from ultrascale.jobs.pods import Pod, last_message
from ultrascale.jobs.status import JobStatus, find_job
from ultrascale.jobs.submitted import SubmittedJob
from ultrascale.operate import tunnel
from ultrascale.operate.clock import Clock, wait
from ultrascale.operate.tunnel import command_takes_ctrl_c, ends_as_by_ctrl_c
from ultrascale.parts.dev.idle_loop import PREFIX, STATE
from ultrascale.parts.dev.part import DevJob
from ultrascale.plan import names
from ultrascale.plan.jobs import namespaces

_KIND = "dev"
_INSTALL = "https://kubernetes.io/docs/tasks/tools/#kubectl"
_READY_SECONDS = 60.0
_LOOK_SECONDS = 1.0
_QUIET_SECONDS = 15.0
_GONE_MINUTES = 5.0
# Fewer characters would tell few people apart.
_USER_CHARACTERS = 9
# Lines to read from the end of the log, which holds the present warning.
_LAST_LINES = 100
_ENDED_BY_SIGNAL = 128
_SHELL = ("sh", "-c", "command -v bash > /dev/null && exec bash || exec sh")

Report = Callable[[str], None]


class Kubectl(Frozen):
    """The program `kubectl`, with the options that choose the cluster."""

    kubeconfig: Path | None = None  # Kubeconfig; None for kubectl's default, which is also ours
    context: str | None = None  # Context of the kubeconfig; None for the current one

    def words(self, *arguments: str) -> list[str]:
        """Return the words of a `kubectl` command with ``arguments``."""
        words = ["kubectl"]
        if self.kubeconfig is not None:
            words.append(f"--kubeconfig={self.kubeconfig}")
        if self.context is not None:
            words.append(f"--context={self.context}")
        return [*words, *arguments]


class Notebook(Frozen):
    """Web server in a dev pod, as the pod's first process describes it."""

    # TCP port on the pod's loopback address; None for a pod with only shells.
    port: int | None
    path: str  # Path of its first page, with the token; `/` for another program than JupyterLab


class DevPod(Frozen):
    """A running dev pod."""

    cluster: Cluster  # The cluster
    kubectl: Kubectl  # The program `kubectl`, with the options that reach the cluster
    job: str  # Its job
    namespace: str  # Its namespace
    pod: str  # Name of the pod
    container: str  # Name of its container

    def notebook(self, clock: Clock) -> Notebook:
        """Return the port and the address of the pod's web server.

        Raises:
            ClusterError: The user may not run commands in the pod, or its first process does not
                answer.
        """
        started = clock.now()
        words = self._exec_words("cat", f"/{STATE}")
        while True:
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                return _notebook(done.stdout)
            waited = (clock.now() - started).total_seconds()
            if waited >= _READY_SECONDS or "orbidden" in done.stderr:
                why = " ".join(done.stderr.split()) or f"status {done.returncode}"
                raise ClusterError(
                    f"{self.job}: its pod {self.pod} does not tell of its notebook: {why}; "
                    f"`ultrascale logs {self.job} -n {self.namespace}` shows what it writes"
                )
            clock.sleep(_LOOK_SECONDS)

    def shell(self, command: Sequence[str] = ()) -> int:
        """Run a shell, or ``command``, in the pod, and return its exit status.

        The shell uses the caller's terminal, if there is one.
        """
        words = self._exec_words(*(command or _SHELL), interactive=True)
        with command_takes_ctrl_c():
            status = subprocess.run(words, check=False).returncode
        return status if status >= 0 else _ENDED_BY_SIGNAL - status

    # A signal during a reconnection ends the command in the same way.
    @ends_as_by_ctrl_c()
    def forward(
        self,
        notebook: Notebook,
        *,
        port: int | None,
        clock: Clock,
        show: Report,
        report: Report,
    ) -> str:
        """Forward a local port to the notebook until the pod ends, and return why the pod ended.

        A broken connection is opened again. Lines of the pod's log are passed on: they tell when
        the pod stops unless it is used.

        Args:
            notebook: The notebook; it has a port.
            port: Local port; None for the notebook's own where it is free, else another.
            clock: The clock.
            show: Is called with the address.
            report: Is called with each line of the pod that is meant for its person.

        Raises:
            ClusterError: The port cannot be opened, or the API server cannot be reached.
        """
        inside = notebook.port or 0
        local = port or (inside if not tunnel.is_open(inside) else tunnel.free_port())
        words = self.kubectl.words(
            "port-forward",
            f"pod/{self.pod}",
            f"{local}:{inside}",
            f"--namespace={self.namespace}",
            "--address=127.0.0.1",
        )
        log = threading.Thread(target=self._pass_on, args=(report,), daemon=True)
        log.start()
        shown = False
        while True:
            with tunnel.opened(words, local, clock=clock, stderr=subprocess.STDOUT) as session:
                if not shown:
                    show(f"http://127.0.0.1:{local}{notebook.path}")
                    shown = True
                while session.poll() is None:
                    log.join(_LOOK_SECONDS)
                    # The end of the pod's log is the end of the pod, or of the connection.
                    if log.is_alive():
                        continue
                    if (end := self._reason_of_end()) is not None:
                        return end
                    clock.sleep(_QUIET_SECONDS)
            if (end := self._reason_of_end()) is not None:
                return end
            report(f"the connection to pod {self.pod} broke; it is opened again")
            clock.sleep(_LOOK_SECONDS)

    def _exec_words(self, *command: str, interactive: bool = False) -> list[str]:
        options = [f"--namespace={self.namespace}", f"--container={self.container}"]
        if interactive:
            options.append("--stdin")
            if sys.stdin.isatty() and sys.stdout.isatty():
                options.append("--tty")
        return self.kubectl.words("exec", self.pod, *options, "--", *command)

    def _pass_on(self, report: Report) -> None:
        choice = logs.Choice(container=self.container, tail=_LAST_LINES)
        # Whether the port is open tells whether the pod or the connection has ended.
        with suppress(ClusterError):
            for line in logs.lines(self.cluster, self.namespace, self.job, choice, follow=True):
                if line.startswith(PREFIX):
                    report(line.removeprefix(PREFIX))

    def _reason_of_end(self) -> str | None:
        """Return why the pod has ended; None while it runs."""
        job = find_job(self.cluster, self.namespace, self.job)
        if job is None:
            return "it was stopped"
        if any(pod.name == self.pod and pod.state == "running" for pod in job.pods):
            return None
        if job.state.result is None:
            return "its pod is gone, and another one takes its place; run the command again"
        return last_words(self.cluster, self.namespace, job)


def refuse_missing_kubectl() -> None:
    """Refuse to start without `kubectl`.

    Raises:
        ClusterError: `kubectl` is not installed. The message links its installation guide.
    """
    if shutil.which("kubectl") is None:
        raise ClusterError(f"kubectl: not installed, or not on PATH; see {_INSTALL}")


def own_name(template: str) -> str:
    """Return the name of this user's pod from a template: every user has a pod of their own.

    Raises:
        UsageError: The machine does not know the user, or the template leaves their name no room.
    """
    try:
        found = getpass.getuser()
    except (KeyError, OSError):  # Python 3.13 and later raise the latter
        wrong = "--name: missing, and this machine has no name for you"
        raise UsageError([f"{wrong}; write it as {template}-anna"]) from None
    if len(template) > config.LONGEST_JOB_NAME - _USER_CHARACTERS:
        wrong = f"--name: missing, and {template} is too long to be followed by your own name"
        raise UsageError([f"{wrong}; use at most {config.LONGEST_JOB_NAME} characters"])
    user = re.sub(r"[^a-z0-9]+", "-", found.lower()).strip("-") or "me"
    return f"{template}-{user}"[: config.LONGEST_JOB_NAME].rstrip("-")


def start(
    file: Path,
    template: str,
    *,
    cluster: Cluster,
    context: str | None,
    report: Report,
    clock: Clock,
    **options: Unpack[JobOptions],
) -> SubmittedJob:
    """Send the user's dev pod, or return the dev pod of the user that already runs.

    A pod of the same name that has ended is replaced.

    Args:
        file: The cluster file.
        template: Name of one of its `jobs`, of kind `dev`.
        cluster: The cluster.
        context: Context of the kubeconfig; None for the current one, whose cluster is checked.
        report: Is called with each step.
        clock: The clock.
        options: Options of `submit`; ``name`` is that of the pod.

    Raises:
        ConfigError: The job or the cluster file has mistakes.
        QuestionError: The job is of another kind.
        ClusterError: The cluster refuses the pod, or lacks something that it needs; or another job
            has the name.
    """
    if context is None:
        same_cluster(file, cluster)
    options["account"] = options.get("account") or cluster.account
    manifests = jobs.prepare(file, template, now=datetime.now(UTC), **options)
    if manifests.kind != _KIND:
        raise QuestionError(
            [f"{template}: a job of kind {manifests.kind}; `ultrascale submit {file} {template}`"]
        )
    running = find_job(cluster, manifests.namespace, manifests.name)
    if running is not None:
        _objects_of(cluster, manifests.namespace, manifests.name)
    if running is not None and running.state.result is None:
        since = f"{running.created:%Y-%m-%d %H:%M} UTC"
        told = "and is left as it is; --name starts another"
        report(f"{manifests.name} is there already, since {since}, {told}")
        return SubmittedJob(manifests=manifests, notes=(), _cluster=cluster)
    if running is not None:
        report(f"{manifests.name} has ended: {last_words(cluster, manifests.namespace, running)}")
        _replace(cluster, manifests, clock)
    notes = (*manifests.notes, *submission.send(cluster, manifests))
    return SubmittedJob(manifests=manifests, notes=notes, _cluster=cluster)


def namespace_of(file: Path, template: str) -> str:
    """Return the namespace of the pods from a template.

    Raises:
        ConfigError: The cluster file has mistakes.
        QuestionError: The file has no such job of kind `dev`.
    """
    cluster = config.load(file)
    job = cluster.jobs.get(template)
    if not isinstance(job, DevJob):
        known = [name for name, template in cluster.jobs.items() if isinstance(template, DevJob)]
        raise QuestionError([f"{template}: no job of kind dev; {config.near(template, known)}"])
    return namespaces.namespace_of(cluster, template, job)


def running_pod(submitted: SubmittedJob, cluster: Cluster, kubectl: Kubectl) -> DevPod:
    """Return the running pod of a submitted job.

    Raises:
        ClusterError: No pod of the job runs.
    """
    status = submitted.status()
    pod = next((pod for pod in status.pods if pod.state == "running"), None)
    if pod is None:
        reason = last_words(cluster, submitted.namespace, status)
        raise ClusterError(f"{submitted.name}: its pod does not run: {reason}")
    return DevPod(
        cluster=cluster,
        kubectl=kubectl,
        job=submitted.name,
        namespace=submitted.namespace,
        pod=pod.name,
        container=submitted.manifests.container,
    )


def last_words(cluster: Cluster, namespace: str, status: JobStatus) -> str:
    """Return why a dev pod has ended, in the words of its log if it left any."""
    for pod in reversed(status.pods):
        if message := _message(cluster, namespace, pod):
            return message
    return status.state.reason or status.state.phase.lower()


def stop(cluster: Cluster, namespace: str, name: str) -> None:
    """Delete a dev pod.

    Raises:
        ClusterError: There is no pod of that name, or it cannot be deleted.
    """
    cancellation.cancel(cluster, namespace, _objects_of(cluster, namespace, name))


def _objects_of(cluster: Cluster, namespace: str, name: str) -> tuple[cancellation.SentObject, ...]:
    """Return the objects of a dev pod.

    Raises:
        ClusterError: There are no objects, or another job has that name.
    """
    sent = cancellation.objects_of(cluster, namespace, name)
    for item in sent:
        if label(item.manifest, names.COMPONENT_LABEL) != _KIND:
            raise ClusterError(
                f"{name}: {item} in namespace {namespace} is of no person's pod; name yours by "
                f"another --name, or delete that job by `ultrascale cancel {name} -n {namespace}`"
            )
    return sent


def _message(cluster: Cluster, namespace: str, pod: Pod) -> str:
    manifest = cluster.find(POD.path(namespace, pod.name))
    return last_message(manifest, container=pod.container).strip() if manifest else ""


def _replace(cluster: Cluster, manifests: JobManifests, clock: Clock) -> None:
    namespace, name = manifests.namespace, manifests.name
    stop(cluster, namespace, name)

    def look() -> str:
        gone = find_job(cluster, namespace, name) is None
        return "" if gone else f"{name} is being deleted"

    wait(clock, look, minutes=_GONE_MINUTES, every=_LOOK_SECONDS, say=lambda _: None)


def _notebook(told: str) -> Notebook:
    state = mapping(parse_json(told))
    port = number(state, "port") or None
    path = f"/lab?token={text(state, 'token')}" if look_up(state, "notebook") is True else "/"
    return Notebook(port=port, path=path)
