"""State of the front for a service: its models, and what keeps requests from reaching it.

Sources:
    https://gateway-api.sigs.k8s.io/reference/spec/#httproutestatus
    https://github.com/envoyproxy/gateway/blob/v1.9.0/internal/gatewayapi/securitypolicy.go
"""

from collections.abc import Iterator, Sequence

from ultrascale.cluster_api.kinds import HTTP_ROUTE, SECURITY_POLICY
from ultrascale.cluster_api.objects import Object, name
from ultrascale.cluster_api.server import FORBIDDEN, NOT_FOUND, Cluster
from ultrascale.documents import mapping, objects, text
from ultrascale.errors import RefusedError
from ultrascale.frozen import Frozen
from ultrascale.jobs.manifests import JobManifests, kind_of
from ultrascale.jobs.part_reports import PartReport
from ultrascale.jobs.status import JobStatus
from ultrascale.plan import names


class FrontReport(Frozen):
    """The front, as a service sees it."""

    models: tuple[str, ...]  # Names of models whose requests it sends to the service
    problems: tuple[str, ...]  # Reasons for which requests do not reach it, each with the way out


def report_of(cluster: Cluster, job: JobStatus) -> PartReport | None:
    """Return what `status` says of the front; None for a job without a route.

    Raises:
        ClusterError: The API server cannot be reached.
    """
    report = front_report_of(cluster, job)
    if report is None:
        return None
    lines = (f"  front: models {', '.join(report.models)}", *(f"    {p}" for p in report.problems))
    return PartReport(name="front", document=report, lines=lines)


def warnings_of(cluster: Cluster, job: JobManifests) -> Iterator[str]:
    """Yield the reason for which no request will reach a service that the front sends them to."""
    if any(kind_of(manifest) == HTTP_ROUTE for manifest in job.objects):
        for problem in front_problems(cluster):
            yield f"the front: {problem}"


def front_report_of(cluster: Cluster, job: JobStatus) -> FrontReport | None:
    """Return the front's state for a service; None for a job without a route.

    Raises:
        ClusterError: The API server cannot be reached.
    """
    if not job.is_service:
        return None
    selector = f"{names.JOB_LABEL}={job.name}"
    try:
        path = HTTP_ROUTE.path(job.namespace)
        routes = [*cluster.items(path, {"labelSelector": selector})]
    except RefusedError as error:
        if error.status not in (FORBIDDEN, NOT_FOUND):
            raise
        return None
    if not routes:
        return None
    stated = " ".join(
        text(route, "metadata", "annotations", names.MODELS_ANNOTATION) for route in routes
    )
    problems = [*front_problems(cluster)]
    for route in routes:
        problems += _refusals(route)
    return FrontReport(models=tuple(stated.split()), problems=tuple(problems))


def front_problems(cluster: Cluster) -> Iterator[str]:
    """Yield the reason for which the front answers no request at all.

    None is told to a user who may not read the front's policy.

    Raises:
        ClusterError: The API server cannot be reached.
    """
    path = SECURITY_POLICY.path(names.FRONT_NAMESPACE, names.FRONT_GATEWAY)
    try:
        policy = cluster.find(path)
    except RefusedError as error:
        if error.status != FORBIDDEN:
            raise
        return
    if policy is None:
        return
    for reason in _false(objects(policy, "status", "ancestors"), "Accepted"):
        yield f"every request is answered with 500, {reason}{_way_out(policy)}"


def _way_out(policy: Object) -> str:
    found = objects(mapping(policy, "spec", "apiKeyAuth"), "credentialRefs")
    if not found:
        return ""
    secret = text(found[0], "name")
    return (
        f"; `kubectl get secret {secret} -n {names.FRONT_NAMESPACE}` shows whether "
        f"serving.front.api_keys is there, and `kubectl create secret generic {secret} "
        f"-n {names.FRONT_NAMESPACE} --from-literal=CLIENT=KEY` makes it"
    )


def _refusals(route: Object) -> Iterator[str]:
    parents = objects(route, "status", "parents")
    if not parents:
        yield f"the front has not taken route {name(route)}: its controller may not run"
    for reason in _false(parents, "Accepted", "ResolvedRefs"):
        yield f"route {name(route)} is refused, {reason}"


def _false(parts: Sequence[Object], *kinds: str) -> Iterator[str]:
    """Yield the messages of conditions that do not hold, each once."""
    told: set[str] = set()
    for part in parts:
        for each in objects(part, "conditions"):
            message = text(each, "message").rstrip(".")
            if text(each, "type") in kinds and text(each, "status") == "False":
                if message not in told:
                    yield message
                told.add(message)
