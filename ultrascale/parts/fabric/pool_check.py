"""Check of the free nodes of one pool, without a job that waits for it."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from ultrascale import config
from ultrascale.catalog.versions import images
from ultrascale.cluster_api.kinds import NODE, POD
from ultrascale.cluster_api.objects import condition, name
from ultrascale.cluster_api.server import Cluster
from ultrascale.core.engine import engine_of
from ultrascale.documents import Json, JsonObject, look_up, text
from ultrascale.errors import ClusterError, QuestionError, UsageError
from ultrascale.jobs.manifests import JobManifests
from ultrascale.jobs.preparation import JobCluster, prepare, read_cluster
from ultrascale.parts.fabric import agent, gate
from ultrascale.parts.fabric.gate import Report, Verdict
from ultrascale.parts.fabric.plan import floor_of
from ultrascale.plan.model import PoolPlan
from ultrascale.plan.names import JOB_LABEL, POOL_LABEL

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
        verdict = gate.run_check(cluster, check, report)
        verdicts.append(gate.with_cordons(cluster, verdict) if cordons else verdict)
    return tuple(verdicts)


def judge_log(cluster_file: Path, pool: str, log: Path) -> agent.Measured:
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
    return agent.judge((pool, pool), lines, 0, floor=floor, efa=efa)


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
    alive = {"labelSelector": JOB_LABEL, "fieldSelector": _ALIVE}
    held = {text(pod, "spec", "nodeName") for pod in cluster.items(POD.path(), alive)}
    nodes = [*cluster.items(NODE.path(), {"labelSelector": f"{POOL_LABEL}={pool}"})]
    free = [name(node) for node in nodes if _takes_pods(node) and name(node) not in held]
    if not free:
        raise ClusterError(
            f"pool {pool} has no free nodes: {len(nodes)} are there, and jobs hold or drains close "
            "them; --nodes N waits for N of them"
        )
    return len(free)


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
