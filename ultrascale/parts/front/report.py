"""State of the front for a service: its models, and the reasons why requests do not reach it.

Sources:
    https://gateway-api.sigs.k8s.io/reference/spec/#httproutestatus
    https://github.com/envoyproxy/gateway/blob/v1.9.0/internal/gatewayapi/securitypolicy.go
"""

from collections.abc import Iterator, Sequence

from ultrascale.cluster_api.objects import HTTP_ROUTE, SECURITY_POLICY, Object, name
from ultrascale.cluster_api.server import FORBIDDEN, NOT_FOUND, Cluster
from ultrascale.documents import mapping, objects, text
from ultrascale.errors import RefusedError
from ultrascale.frozen import Frozen
from ultrascale.jobs.manifests import JobManifests, kind_of
from ultrascale.jobs.part_reports import PartReport
from ultrascale.jobs.status import JobStatus
from ultrascale.plan import names


class FrontReport(Frozen):
    """The front in a service's view."""

    models: tuple[str, ...]  # Names of models whose requests it sends to the service
    problems: tuple[str, ...]  # Reasons why requests do not reach it, each with a remedy


def report_of(cluster: Cluster, job: JobStatus) -> PartReport | None:
    """Return the front's report for `status`; None for a job without a route.

    Raises:
        ClusterError: The API server cannot be reached.
    """
    report = front_report_of(cluster, job)
    if report is None:
        return None
    lines = (f"  front: models {', '.join(report.models)}", *(f"    {p}" for p in report.problems))
    return PartReport(name="front", document=report, lines=lines)


def warnings_of(cluster: Cluster, job: JobManifests) -> Iterator[str]:
    """Yield the reason why no request will reach a service of the front."""
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
    """Yield the reason why the front answers no request at all.

    A user who may not read the front's policy gets none.

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
    for reason in _failed_conditions(objects(policy, "status", "ancestors"), "Accepted"):
        yield f"every request is answered with 500, {reason}{_remedy(policy)}"


def _remedy(policy: Object) -> str:
    references = objects(mapping(policy, "spec", "apiKeyAuth"), "credentialRefs")
    if not references:
        return ""
    secret = text(references[0], "name")
    return (
        f"; `kubectl get secret {secret} -n {names.FRONT_NAMESPACE}` shows whether "
        f"serving.front.api_keys is there, and `kubectl create secret generic {secret} "
        f"-n {names.FRONT_NAMESPACE} --from-literal=CLIENT=KEY` makes it"
    )


def _refusals(route: Object) -> Iterator[str]:
    parents = objects(route, "status", "parents")
    if not parents:
        yield f"the front has not taken route {name(route)}: its controller may not run"
    for reason in _failed_conditions(parents, "Accepted", "ResolvedRefs"):
        yield f"route {name(route)} is refused, {reason}"


def _failed_conditions(parts: Sequence[Object], *kinds: str) -> Iterator[str]:
    told: set[str] = set()
    for part in parts:
        for condition_ in objects(part, "conditions"):
            message = text(condition_, "message").rstrip(".")
            if text(condition_, "type") in kinds and text(condition_, "status") == "False":
                if message not in told:
                    yield message
                told.add(message)
