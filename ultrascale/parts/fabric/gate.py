"""Checks of nodes before a job is sent: run, read, and acted upon.

A failed node is cordoned, and the checks run again where the cluster may have another. Pods of a
check have no rights in the cluster: the sender of the job cordons, by the verdict in their logs.
"""

import json
import secrets
import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Literal, cast

from msgspec import field
from msgspec.structs import replace

from ultrascale import config
from ultrascale.catalog.versions import images
from ultrascale.cluster_api.objects import NODE, POD, condition, label, name, uid
from ultrascale.cluster_api.server import Cluster
from ultrascale.core.engine import engine_of
from ultrascale.documents import (
    Json,
    JsonObject,
    look_up,
    mapping,
    number,
    objects,
    parse_json,
    text,
)
from ultrascale.errors import ClusterError, QuestionError, RefusedError, UsageError
from ultrascale.frozen import Frozen
from ultrascale.jobs import cancellation, logs, submission
from ultrascale.jobs.manifests import CheckManifests, JobManifests, kind_of
from ultrascale.jobs.pods import last_message
from ultrascale.jobs.preparation import JobCluster, prepare, read_cluster
from ultrascale.jobs.progress import Followed, Progress, follow
from ultrascale.jobs.room import nodes_for, pod_kinds
from ultrascale.jobs.status import find_job, job_status
from ultrascale.jobs.workloads import workload_kinds
from ultrascale.parts.fabric.agent import VERDICT, Measured, judge
from ultrascale.parts.fabric.facts import DEVICE_LINE
from ultrascale.parts.fabric.plan import GROUPS_VARIABLE, SETTINGS_VARIABLE, floor_of
from ultrascale.parts.fabric.remote import TOKEN
from ultrascale.plan.model import PoolPlan
from ultrascale.plan.names import CHECK_LABEL, JOB_LABEL, POOL_LABEL, network_layer_label

CORDONED = "ultrascale.dev/failed-check"
"""Annotation of a node that a check cordoned, with the reason."""

# Instances of three layers leave the label of the fourth out.
_LAYERS = range(1, 5)
# Most nodes that are read, and named in a variable of each pod.
_MOST_ORDERED = 1_000
# Beyond a check's own deadline: its controller reports the end.
_END_SECONDS = 120
_GONE_SECONDS, _POLL_SECONDS = 120, 1.0


class Verdict(Frozen):
    """Result of one check."""

    check: str  # Kind of the check
    bad: Mapping[str, str]  # Failed nodes, with the reasons
    # Nodes of failed pairs that no round could decide between, or whose diagnosis is likely the
    # image's fault, with the reasons.
    undecided: Mapping[str, str] = field(default_factory=dict[str, str])
    # Pairs of sound nodes between which the network was slow.
    paths: tuple[tuple[str, str], ...] = ()
    nodes: int = 0  # Nodes that were checked
    rounds: int = 1  # Rounds of measurements
    slowest: float | None = None  # Least bus bandwidth in GB/s; None where none was measured
    cordoned: tuple[str, ...] = ()  # Bad nodes that were cordoned

    @property
    def passed(self) -> bool:
        """Whether a job may start on these nodes."""
        return not self.bad and not self.undecided

    def __str__(self) -> str:
        bound = f", {self.slowest:g} GB/s or more" if self.slowest is not None else ""
        many = "" if self.rounds == 1 else "s"
        rounds = f" in {self.rounds} round{many}" if self.check == "fabric" else ""
        return f"{self.check}: {self.nodes} nodes checked{rounds}{bound}"


Report = Callable[[str], None]


def pass_checks(
    cluster: Cluster, job: JobManifests, report: Report = lambda _: None
) -> tuple[str, ...]:
    """Run the checks of a job until its nodes pass, and return notes for the user.

    Args:
        cluster: The job's cluster.
        job: The job.
        report: Is called with the checks' cost, and with each action and result.

    Raises:
        ClusterError: A check cannot run, nodes fail in the last try, or the bad ones cannot be
            determined. Nothing of the job was sent.
    """
    told: list[str] = []
    for check in job.checks:
        report(check.note)
    for attempt in range(1, job.check_tries + 1):
        verdicts: list[Verdict] = []
        for check in job.checks:
            verdict = with_cordons(cluster, run_check(cluster, check, report))
            verdicts.append(verdict)
            for node in verdict.cordoned:
                told.append(f"{node} is cordoned: {verdict.check}: {verdict.bad[node]}.")
                report(told[-1])
            if refused := [node for node in verdict.bad if node not in verdict.cordoned]:
                raise ClusterError(f"job {job.name} was not sent", *_uncordoned(verdict, refused))
            if verdict.undecided:
                raise ClusterError(f"job {job.name} was not sent", *told, *_undecided(verdict))
            if verdict.bad:
                break
        if all(verdict.passed for verdict in verdicts):
            return (*told, *notes_of(verdicts))
        if attempt < job.check_tries:
            report(f"checking again without them, try {attempt + 1} of {job.check_tries}")
    raise ClusterError(
        f"job {job.name} was not sent: nodes failed in each of {job.check_tries} tries", *told
    )


def notes_of(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield the results of passed checks."""
    for verdict in verdicts:
        yield f"{verdict} passed."
        for one, other in verdict.paths:
            yield (
                f"The network between {one} and {other} is slow, though both nodes are well: "
                "a job across it runs at its speed."
            )


def _undecided(verdict: Verdict) -> Iterator[str]:
    named = ", ".join(f"{node} ({why})" for node, why in verdict.undecided.items())
    if verdict.check == "device":
        yield f"device: the diagnosis did not run, or all nodes fail it: {named}"
        yield (
            "none of them was cordoned: the image (scheduling.preflight.device_image), a driver or "
            "a right may be at fault; `ultrascale logs` of the check says more"
        )
        return
    yield f"{verdict.check}: no round could tell which of these nodes is bad: {named}"
    yield (
        "none of them was cordoned: submit again, or check them beside others by "
        "`ultrascale fabric FILE POOL`"
    )


def _uncordoned(verdict: Verdict, nodes: Sequence[str]) -> Iterator[str]:
    for node in nodes:
        yield f"{node} failed: {verdict.check}: {verdict.bad[node]}"
    yield (
        "you may not cordon nodes (patch nodes): let somebody who may run "
        f"`kubectl cordon {' '.join(nodes)}`, and submit again"
    )


def run_check(cluster: Cluster, check: CheckManifests, report: Report) -> Verdict:
    """Run one check and return its verdict.

    A passed check is deleted; one with bad nodes or a failure stays, with its logs, until its time
    to live is over or another takes its place.

    Raises:
        ClusterError: It cannot be sent, fails or does not end.
    """
    job = _with_variables(with_neighbours(cluster, check.job), {TOKEN: secrets.token_hex(16)})
    _take_away(cluster, job, only="ended")
    submission.send(cluster, job)
    report(f"{check.check}: checking {job.pods} nodes by job {job.name}")
    kinds = {kind_of(manifest) for manifest in job.objects}
    followed = Followed(
        name=job.name,
        namespace=job.namespace,
        kinds=tuple(kind for kind in workload_kinds() if kind in kinds),
        container=job.container,
    )
    try:
        # It waits for its nodes as long as its job would, and then at most for its longest run.
        waiting = partial(_report_waiting, job.name, report, set[str]())
        progress = follow(cluster, followed, until=lambda state: state.up, report=waiting)
        if progress.state.result is None:
            progress = follow(
                cluster,
                followed,
                until=lambda _: False,
                report=lambda _: None,
                timeout_seconds=check.seconds + _END_SECONDS,
            )
        if progress.state.result == "failed":
            where = f"{job.name} -n {job.namespace}"
            raise ClusterError(
                f"check {job.name} {progress.state.phase.lower()}: {progress.state.reason}; "
                f"see `ultrascale logs {where}`"
            )
        verdict = _read(cluster, check, job)
    except KeyboardInterrupt:
        _take_away(cluster, job)
        raise
    except ClusterError:
        # An ended check stays, with its logs. Any other would go on without a reader.
        with suppress(ClusterError):
            _take_away(cluster, job, only="unfinished")
        raise
    if verdict.passed:
        _take_away(cluster, job)
    report(str(verdict))
    return verdict


def _report_waiting(name: str, report: Report, reported: set[str], progress: Progress) -> None:
    for reason in progress.waiting:
        if reason not in reported:
            reported.add(reason)
            report(f"{name} waits: {reason}")


def _read(cluster: Cluster, check: CheckManifests, job: JobManifests) -> Verdict:
    pods = job_status(cluster, job.namespace, job.name).pods
    if check.check == "fabric":
        choice = logs.Choice(index=0, container=job.container)
        lines = logs.lines(cluster, job.namespace, job.name, choice, follow=False)
        return _without_foreign_nodes(fabric_verdict(lines), {pod.node for pod in pods})
    nodes = {pod.uid: pod.node for pod in pods}
    # One list of pods, not a log of each: thousands of nodes would wait for their verdicts.
    query = {"labelSelector": f"{JOB_LABEL}={job.name}"}
    ended = (pod for pod in cluster.items(POD.path(job.namespace), query) if uid(pod) in nodes)
    said = ((nodes[uid(pod)], last_message(pod, container=job.container)) for pod in ended)
    return device_verdict(said, job.pods)


def _without_foreign_nodes(verdict: Verdict, nodes: Container[str]) -> Verdict:
    """Return a verdict that calls only nodes bad that run pods of the check.

    A reader of the namespace's pods can read the token of the check, and pretend to be one of them.
    """
    strange = {node: why for node, why in verdict.bad.items() if node not in nodes}
    reasons = {node: f"{why}; no pod of the check is on it" for node, why in strange.items()}
    bad = {node: why for node, why in verdict.bad.items() if node not in strange}
    return replace(verdict, bad=bad, undecided={**verdict.undecided, **reasons})


def fabric_verdict(lines: Iterator[str] | Sequence[str]) -> Verdict:
    """Return the verdict in the log of the first pod of a fabric check.

    Raises:
        ClusterError: There is no verdict, or pods never came.
    """
    verdicts = [line for line in lines if line.startswith(VERDICT)]
    try:
        said = mapping(parse_json(verdicts[-1].removeprefix(VERDICT)))
    except (IndexError, ValueError):
        wrong = "the fabric check ended without a whole verdict; its first pod's log says why"
        raise ClusterError(wrong) from None
    nodes, pods = number(said, "nodes"), number(said, "pods")
    if nodes < pods:
        raise ClusterError(
            f"only {nodes} of the {pods} pods of the fabric check came together; "
            "`ultrascale status` of the check says what the others waited for"
        )
    slowest = said.get("slowest")
    return Verdict(
        check="fabric",
        bad={node: str(why) for node, why in mapping(said, "bad").items()},
        undecided={node: str(why) for node, why in mapping(said, "undecided").items()},
        paths=tuple(cast("list[tuple[str, str]]", said.get("paths", []))),
        nodes=nodes,
        rounds=number(said, "rounds"),
        slowest=slowest if isinstance(slowest, float | int) else None,
    )


def device_verdict(said: Iterable[tuple[str, str]], pods: int) -> Verdict:
    """Return the verdict in the messages of a device check's pods.

    Nodes that fail because the image lacks a program are undecided, and so are all where all of
    several fail: the image, a driver or a right is then the likelier cause.

    Args:
        said: Nodes, and the messages of the pods on them; an evicted one has no verdict.
        pods: Pods of the check.

    Raises:
        ClusterError: Nodes have no verdict.
    """
    failed: dict[str, str] = {}
    unrun: set[str] = set()
    judged: set[str] = set()
    for node, message in said:
        if not message.startswith(DEVICE_LINE):
            continue
        judged.add(node)
        first, *rest = message.splitlines()
        if status := number(mapping(parse_json(first.removeprefix(DEVICE_LINE))), "status"):
            failed[node] = ": ".join([f"exit status {status}", *(line for line in rest if line)])
            unrun |= {node} if status in _CANNOT_RUN else set()
    if (seen := len(judged)) < pods:
        raise ClusterError(
            f"the device check of {pods - seen} of {pods} nodes ended without a verdict; "
            "the logs of its pods say why"
        )
    unclear = {*failed} if len(failed) == seen > 1 else unrun
    return Verdict(
        check="device",
        bad={node: why for node, why in failed.items() if node not in unclear},
        undecided={node: why for node, why in failed.items() if node in unclear},
        nodes=seen,
    )


# A shell's statuses for a missing program, or for a file that is no program.
_CANNOT_RUN = (126, 127)


def with_cordons(cluster: Cluster, verdict: Verdict) -> Verdict:
    """Cordon the bad nodes of a verdict, and return it with the cordoned ones.

    A vanished node counts as cordoned; one that the user may not patch does not.

    Raises:
        ClusterError: The API server cannot be reached.
    """
    cordoned: list[str] = []
    for node, why in verdict.bad.items():
        try:
            _cordon(cluster, node, f"{verdict.check}: {why}")
        except RefusedError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                continue
        cordoned.append(node)
    return replace(verdict, cordoned=tuple(cordoned))


def _cordon(cluster: Cluster, node: str, why: str) -> None:
    """Keep new pods off a node, and annotate it with the reason."""
    key = CORDONED.replace("/", "~1")
    cluster.patch(
        NODE.path(name=node),
        [
            {"op": "add", "path": "/spec/unschedulable", "value": True},
            {"op": "add", "path": f"/metadata/annotations/{key}", "value": why},
        ],
    )


def with_neighbours(cluster: Cluster, job: JobManifests) -> JobManifests:
    """Return a fabric check whose pods know which nodes are near each other.

    Without the right to read nodes, or above a thousand, neighbours are paired by name.
    """
    kinds = [kind for manifest in job.objects for kind in pod_kinds(manifest)]
    try:
        nodes = {
            name(node): node
            for pod, _ in kinds
            for node in nodes_for(cluster, pod, most=_MOST_ORDERED)
        }
    except RefusedError:
        return job
    paths = {
        name: "/".join(label(node, network_layer_label(layer)) for layer in _LAYERS)
        for name, node in nodes.items()
    }
    known = {name: path for name, path in paths.items() if path.strip("/")}
    if not known or len(known) > _MOST_ORDERED:
        return job
    # Numbers are shorter than ids, and only the order matters.
    numbers = {path: f"{number:04}" for number, path in enumerate(sorted(set(known.values())))}
    groups = json.dumps({name: numbers[path] for name, path in known.items()})
    return _with_variables(job, {GROUPS_VARIABLE: groups})


def _with_variables(job: JobManifests, variables: Mapping[str, str]) -> JobManifests:
    """Return a check with variables for the pods of a fabric check; any other as it is."""
    copied = deepcopy(job.objects)
    for pod, _ in (kind for manifest in copied for kind in pod_kinds(manifest)):
        for container in objects(pod, "containers"):
            env = cast("list[Json]", container.get("env", []))
            if any(mapping(variable).get("name") == SETTINGS_VARIABLE for variable in env):
                env += [{"name": name, "value": value} for name, value in variables.items()]
    return replace(job, objects=copied)


def _take_away(
    cluster: Cluster,
    job: JobManifests,
    *,
    only: Literal["ended", "unfinished"] | None = None,
) -> None:
    """Delete a check, and wait until its nodes are free.

    Raises:
        ClusterError: It does not go, or is a job and no check.
    """
    status = find_job(cluster, job.namespace, job.name)
    if status is None or (only is not None and (status.state.result is None) != (only != "ended")):
        return
    there = cancellation.objects_of(cluster, job.namespace, job.name)
    if not all(label(workload.manifest, CHECK_LABEL) for workload in there):
        raise ClusterError(
            f"job {job.name} is there, is no check, and has the name that the check needs; "
            f"`ultrascale cancel -n {job.namespace} {job.name}` deletes it"
        )
    cancellation.cancel(cluster, job.namespace, there)
    until = time.monotonic() + _GONE_SECONDS
    while find_job(cluster, job.namespace, job.name) is not None:
        if time.monotonic() > until:
            raise ClusterError(
                f"check {job.name} is deleted and does not go; "
                f"`ultrascale status -n {job.namespace} {job.name}` shows its pods"
            )
        time.sleep(_POLL_SECONDS)


# --- Checks of the free nodes of one pool, without a job that waits for them ----------------------


_LONGEST_NAME = config.LONGEST_JOB_NAME - len("-fabric")
_ALIVE = "status.phase!=Succeeded,status.phase!=Failed"


def prepare_check(
    cluster_file: Path,
    pool: str,
    *,
    checks: Sequence[config.PreflightCheck],
    nodes: int | None,
    queue: str | None,
    cluster: Cluster | None,
) -> JobManifests:
    """Return a job of a pool's nodes for its checks. Nothing is sent.

    Args:
        cluster_file: The cluster file.
        pool: Name of the pool.
        checks: Kinds of the checks.
        nodes: Nodes to check; None: those that no job holds, which need ``cluster``.
        queue: Queue that admits the check. Without one it waits in none of Kueue's: it takes nodes
            that no job holds, and a quota may be smaller than the pool.
        cluster: Where to count nodes; None counts those of the file.

    Raises:
        ConfigError: The file has mistakes, or the pool has nothing to check.
        QuestionError: There is no such pool.
        ClusterError: The pool has no free nodes.
    """
    into = read_cluster(cluster_file)
    _pools(into, pool)
    count = nodes or (_free(cluster, pool) if cluster is not None else _planned(into, pool))
    if queue is None and not engine_of(into.cluster.scheduling).gangs:
        into = replace(into, beside_queues=True)
    stated: dict[str, Json] = {
        # The pool is in the name: checks of several pools may run at the same time.
        "name": f"check-{pool}"[:_LONGEST_NAME].rstrip("-"),
        "pool": pool,
        "nodes": count,
        # Never pulled: only the checks of this job are sent.
        "image": images()["nccl-tests"].reference,
        "command": ["true"],
        "preflight": [*checks],
        "volumes": [],
        "durable": False,
    }
    if queue is not None:
        stated["queue"] = queue
    return prepare(into, stated)


def check_pool(
    cluster: Cluster, prepared: JobManifests, report: Report, *, cordons: bool = True
) -> tuple[Verdict, ...]:
    """Run the checks once, cordon the nodes that fail, and return the verdicts.

    Args:
        cluster: The cluster.
        prepared: The job of these checks; it is not sent.
        report: Is called with each action.
        cordons: Whether bad nodes are cordoned.

    Raises:
        ClusterError: A check cannot be sent, or ends without a verdict.
    """
    verdicts: list[Verdict] = []
    for check in prepared.checks:
        verdict = run_check(cluster, check, report)
        verdicts.append(with_cordons(cluster, verdict) if cordons else verdict)
    return tuple(verdicts)


def judge_log(cluster_file: Path, pool: str, log: Path) -> Measured:
    """Return the verdict on a log of nccl-tests or nccom-test, by the floor of a pool's nodes.

    Raises:
        ConfigError: The cluster file has mistakes.
        QuestionError: There is no such pool.
        UsageError: The log cannot be read.
    """
    into = read_cluster(cluster_file)
    pools = _pools(into, pool)
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise UsageError([f"--log: {log}: {error.strerror}"]) from error
    floor, efa = floor_of(into.cluster, pools), all(pool.efa_interfaces > 0 for pool in pools)
    return judge((pool, pool), lines, 0, floor=floor, efa=efa)


def _pools(into: JobCluster, pool: str) -> tuple[PoolPlan, ...]:
    shards = tuple(shard for shard in into.plan.all_pools if shard.pool == pool)
    if not shards:
        names = sorted({pool.pool for pool in into.plan.all_pools})
        raise QuestionError([f"POOL: no pool {pool!r} in the file; {config.near(pool, names)}"])
    return shards


def _planned(into: JobCluster, pool: str) -> int:
    return (
        sum(pool.max_nodes if pool.static else pool.min_nodes for pool in _pools(into, pool)) or 2
    )


def _free(cluster: Cluster, pool: str) -> int:
    """Return how many nodes of a pool take pods and run none of a job.

    Raises:
        ClusterError: There is no such node.
    """
    free, nodes = free_nodes(cluster, pool)
    if not free:
        raise ClusterError(
            f"pool {pool} has no free nodes: {nodes} are there, and jobs hold or drains close "
            "them; --nodes N waits for N of them"
        )
    return free


def free_nodes(cluster: Cluster, pool: str) -> tuple[int, int]:
    """Return the number of nodes of a pool that take pods and run none of a job, and of all.

    Raises:
        ClusterError: The server refuses, or cannot be reached.
    """
    alive = {"labelSelector": JOB_LABEL, "fieldSelector": _ALIVE}
    held = {text(pod, "spec", "nodeName") for pod in cluster.items(POD.path(), alive)}
    nodes = [*cluster.items(NODE.path(), {"labelSelector": f"{POOL_LABEL}={pool}"})]
    free = [name(node) for node in nodes if _takes_pods(node) and name(node) not in held]
    return len(free), len(nodes)


def _takes_pods(node: JsonObject) -> bool:
    ready = bool(condition(node, "Ready"))
    return ready and not look_up(node, "spec", "unschedulable")


def lines_of(verdict: Verdict, *, cordons: bool = True) -> Iterator[str]:
    """Yield a verdict as lines for people.

    Args:
        verdict: The verdict.
        cordons: Whether bad nodes were to be cordoned.
    """
    yield str(verdict)
    for node, why in verdict.bad.items():
        done = "cordoned" if node in verdict.cordoned else "not cordoned"
        if cordons and node not in verdict.cordoned:
            done += f": you may not patch nodes; somebody who may runs `kubectl cordon {node}`"
        yield f"{node}: bad: {why}; {done}"
    for node, why in verdict.undecided.items():
        yield f"{node}: undecided: {why}"
    for one, other in verdict.paths:
        yield f"{one} and {other}: well, and the network between them is slow"
