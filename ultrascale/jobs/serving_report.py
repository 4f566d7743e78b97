"""Traffic of a service now: requests, tokens and waits, from the metrics of its pods.

The API server passes requests on to pods, so only the connection to it is needed. Source:
https://kubernetes.io/docs/tasks/access-application-cluster/access-cluster-services/
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from ultrascale.catalog import leaderworkerset, vllm
from ultrascale.cluster_api.objects import POD, SCALED_OBJECT, Object, condition, label, name, uid
from ultrascale.cluster_api.server import FORBIDDEN, Cluster
from ultrascale.documents import number, objects, text
from ultrascale.errors import ClusterError, RefusedError
from ultrascale.frozen import Frozen
from ultrascale.jobs.listing import visible_objects
from ultrascale.jobs.status import JobStatus
from ultrascale.lambdas.serving import MetricNames, Reading, Traffic, read, traffic
from ultrascale.plan import names
from ultrascale.plan.model import ServiceNeeds

SECONDS = 3.0
"""Time between the two readings behind a rate."""
_READ_TIMEOUT = 5.0
_AT_A_TIME = 16
_PER_MILLION = 1_000_000 / 3_600
_NAMES = MetricNames(
    waiting=vllm.WAITING,
    running=vllm.RUNNING,
    cache=vllm.KV_CACHE_USAGE,
    prompt_tokens=vllm.PROMPT_TOKENS,
    generated_tokens=vllm.GENERATION_TOKENS,
    first_token=vllm.TIME_TO_FIRST_TOKEN,
)


class ServingReport(Frozen):
    """Traffic of a service."""

    ready: int  # Pods that are ready to answer
    traffic: Traffic | None  # Their traffic; None where none of them reports it
    # Whether the times to the first token are of answers within `SECONDS`; else they are of all
    # answers since the pods' starts.
    recent: bool
    # Cost of a million generated tokens at this rate; None where the price or the rate is not
    # known, or nothing is generated.
    usd_per_million_tokens: float | None
    unread: tuple[str, ...]  # Reasons of unread metrics, each once


def serving_report_of(
    cluster: Cluster,
    job: JobStatus,
    needs: ServiceNeeds | None = None,
    *,
    sleep: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.time,
) -> ServingReport | None:
    """Return the traffic of a service; None for a job whose metrics are not known.

    It takes `SECONDS` where pods answer.

    Args:
        cluster: Its cluster.
        job: Its state.
        needs: Its nodes and money by the cluster file; None where they are not known.
        sleep: Waits for some seconds.
        now: Returns the time, in seconds since 1970.

    Raises:
        ClusterError: The user may not list pods, or the API server cannot be reached.
    """
    if not job.is_service:
        return None
    selector = f"{names.JOB_LABEL}={job.name},{names.SERVER_LABEL}=vllm"
    pods = [*cluster.items(POD.path(job.namespace), {"labelSelector": selector})]
    if not pods:
        return None
    metrics = f"/proxy{vllm.METRICS_PATH}"
    paths = {id: f"{place}{metrics}" for id, place in ready_pods(pods, job.namespace)}
    earlier, unread = _read_all(cluster, paths, now)
    if not earlier:
        return ServingReport(
            ready=len(paths), traffic=None, recent=False, usd_per_million_tokens=None, unread=unread
        )
    sleep(SECONDS)
    later, unread = _read_all(cluster, {uid: paths[uid] for uid in earlier}, now, unread)
    current = traffic(later or earlier, earlier if later else {})
    recent = bool(current.answers)
    if not recent:
        whole = traffic(later or earlier, {})
        current = replace(
            current,
            first_token_half=whole.first_token_half,
            first_token_most=whole.first_token_most,
            answers=whole.answers,
        )
    return ServingReport(
        ready=len(paths),
        traffic=current,
        recent=recent and bool(later),
        usd_per_million_tokens=_cost(current, needs),
        unread=unread,
    )


def ready_pods(pods: Sequence[Object], namespace: str) -> Iterator[tuple[str, str]]:
    """Yield UID and path, with its port, of each pod that takes requests."""
    for pod in pods:
        if label(pod, leaderworkerset.WORKER_LABEL) not in ("", "0"):
            continue
        if not condition(pod, "Ready") or text(pod, "metadata", "deletionTimestamp"):
            continue
        ports = (
            port
            for container in objects(pod, "spec", "containers")
            for port in objects(container, "ports")
            if text(port, "name") == names.SERVING_PORT
        )
        if (port := next(ports, None)) is not None:
            place = f"{name(pod)}:{number(port, 'containerPort')}"
            yield uid(pod), POD.path(namespace, place)


def _read_all(
    cluster: Cluster,
    paths: Mapping[str, str],
    now: Callable[[], float],
    unread: Sequence[str] = (),
) -> tuple[Mapping[str, Reading], tuple[str, ...]]:
    """Return readings by UID, and why others are missing, beside the reasons in ``unread``."""

    def ask(path: str) -> Reading | str:
        try:
            with cluster.stream(path, {}, read_timeout=_READ_TIMEOUT) as stream:
                body = b"\n".join(stream.lines()).decode(errors="replace")
        except RefusedError as error:
            if error.status == FORBIDDEN:
                return (
                    "you may not read them: ask for get on pods/proxy in its namespace, which "
                    "policy edit of kubernetes.access gives"
                )
            return error.message
        except ClusterError as error:
            return str(error)
        return read(body, _NAMES, at=now()) or "the program answers without metrics of vLLM"

    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        answers = dict(zip(paths, pool.map(ask, paths.values()), strict=True))
    reasons = [answer for answer in answers.values() if isinstance(answer, str)]
    readings = {pod: answer for pod, answer in answers.items() if isinstance(answer, Reading)}
    return readings, tuple(dict.fromkeys((*unread, *reasons)))


def _cost(traffic: Traffic, needs: ServiceNeeds | None) -> float | None:
    hourly = None if needs is None else needs.figures["usd_per_hour_share"].value
    if hourly is None or not traffic.generated_tokens_per_second:
        return None
    return hourly * traffic.replicas / traffic.generated_tokens_per_second * _PER_MILLION


# --- State of a service's autoscaler, and the reasons why its replicas ignore the load ------------
# Replicas that ignore it are paid for while nobody asks, or too few while many do.
#
# Sources:
#     https://github.com/kedacore/keda/blob/v2.20.2/apis/keda/v1alpha1/condition_types.go
#     https://github.com/kedacore/keda/blob/v2.20.2/pkg/fallback/fallback.go


class ScalingReport(Frozen):
    """Replicas of a service that follow the load."""

    least: int  # Fewest replicas
    most: int  # Most replicas
    problems: tuple[str, ...]  # Reasons why they ignore the load, each with a remedy


def scaling_report_of(cluster: Cluster, job: JobStatus) -> ScalingReport | None:
    """Return the state of a service's autoscaler; None where its replicas are fixed.

    Raises:
        ClusterError: The API server cannot be reached.
    """
    if not job.is_service:
        return None
    selector = {"labelSelector": f"{names.JOB_LABEL}={job.name}"}
    scaled = next(iter(visible_objects(cluster, SCALED_OBJECT, job.namespace, selector)), None)
    if scaled is None:
        return None
    return ScalingReport(
        least=number(scaled, "spec", "minReplicaCount"),
        most=number(scaled, "spec", "maxReplicaCount"),
        problems=tuple(_problems(scaled, job.namespace)),
    )


def _problems(scaled: Object, namespace: str) -> Iterator[str]:
    look = f"`kubectl describe scaledobject {name(scaled)} -n {namespace}` has its events"
    if condition(scaled, "Paused"):
        yield "KEDA is paused, and the replicas stay; take away annotations of autoscaling.keda.sh"
        return
    if not (states := [*objects(scaled, "status", "conditions")]):
        yield "KEDA has not looked at it yet; its pods are in namespace keda"
        return
    for state in states:
        if text(state, "type") == "Ready" and text(state, "status") == "False":
            yield f"KEDA does not scale it: {text(state, 'message')}; {look}"
    if condition(scaled, "Fallback"):
        yield (
            "KEDA cannot read the metrics of its pods, so the replicas stay as they are and are "
            f"paid for; {look}"
        )
