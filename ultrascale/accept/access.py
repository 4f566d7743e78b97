"""Rights of the file's roles, tried by impersonated dry runs beside what the roles may do.

Sources:
    https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation
    https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access
"""

from collections.abc import Iterator, Sequence
from functools import partial

from ultrascale.accept.model import Check, Run
from ultrascale.cluster_api.objects import INDEXED_JOB, NETWORK_POLICY, SECRET, Kind, Object
from ultrascale.cluster_api.server import FORBIDDEN, Cluster
from ultrascale.core.table import all_parts
from ultrascale.documents import look_up
from ultrascale.errors import RefusedError
from ultrascale.findings import Finding, Issue, finding
from ultrascale.frozen import Frozen
from ultrascale.plan import names
from ultrascale.plan.model import AccessEntryPlan, AccessPolicyPlan, ClusterPlan, QueueingPlan

_POLICY, _RBAC = "ValidatingAdmissionPolicy 'ultrascale-", "cannot "
_ELSEWHERE, _STRANGER = "kube-system", "ultrascale-acceptance"
_ISOLATION = "default-deny-ingress"
_ANY = ("any",)
_SECONDS = 10.0
_REVIEW = Kind(
    "authorization.k8s.io/v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False
)
_FIX = "deploy again, and look at kubernetes.access and at bindings that others have made"


class _Try(Frozen):
    """A request on behalf of a role."""

    what: str  # Its meaning, after the role's name
    words: str  # Words of the refusal that is wanted; empty where it is to be allowed
    verb: str  # Verb of the API
    kind: Kind  # Kind of its object
    namespace: str  # Namespace of its object
    job: Object | None = None  # The job that it creates

    def ask(self, person: Cluster) -> None:
        """Send it, as a dry run.

        Raises:
            RefusedError: The server refuses it.
        """
        if self.verb == "list":
            person.get(self.kind.path(self.namespace), {"limit": "1"})
        elif self.verb == "delete":
            person.rehearse_deletion(self.kind, self.namespace, _ISOLATION)
        elif self.job is not None:
            person.create(self.kind, self.namespace, self.job, dry_run=True)


def checks(plan: ClusterPlan) -> Iterator[Check]:
    """Yield the check of each role that works in namespaces alone."""
    for entry in plan.access.entries:
        for policy in entry.policies:
            if policy.namespaces:
                role = entry.role.rpartition("/")[2]
                yield Check(
                    level="objects",
                    name="access",
                    subject=f"{role} in {policy.namespaces[0]}",
                    title=f"{role} may do what the file says, and no more",
                    run=partial(_findings, entry=entry, policy=policy),
                )


def _findings(run: Run, entry: AccessEntryPlan, policy: AccessPolicyPlan) -> Iterator[Finding]:
    subject = f"{entry.role.rpartition('/')[2]} in {policy.namespaces[0]}"
    groups = [*entry.groups, "system:authenticated"]
    person = run.cluster.impersonating(entry.role, groups)
    allowed, *refused = _tries(run.plan, policy)
    try:
        allowed.ask(person)
    except RefusedError as error:
        # Words of the policy or of another webhook: the file's own role is refused.
        if error.status != FORBIDDEN or _POLICY in error.message:
            yield finding(
                "access",
                subject,
                [Issue(state="failed", evidence=f"{allowed.what}: {error.message}", fix=_FIX)],
                fine="",
            )
        elif run.account is None and "impersonate" not in error.message:
            run.say(f"{subject}: not tried: EKS's access policies do not hold on this server")
        else:
            yield _reviewed(run.cluster, subject, entry.role, groups, (allowed, *refused))
        return
    wrong: list[Issue] = []
    for attempt in refused:
        try:
            attempt.ask(person)
        except RefusedError as error:
            if attempt.words not in error.message:
                told = f"{attempt.what}: refused, but not for that: {error.message}"
                wrong.append(Issue(state="failed", evidence=told, fix=_FIX))
        else:
            wrong.append(Issue(state="differs", evidence=f"{attempt.what}: allowed", fix=_FIX))
    fine = f"{allowed.what}: allowed; refused: {', '.join(attempt.what for attempt in refused)}"
    yield finding("access", subject, wrong, fine=fine)


def _reviewed(
    cluster: Cluster, subject: str, user: str, groups: list[str], tries: Sequence[_Try]
) -> Finding:
    """Return what a review says of the rights: it runs no policy, so queues are not seen."""
    wrong: list[str] = []
    for attempt in tries:
        kind = attempt.kind
        attributes: Object = {
            "verb": attempt.verb,
            "group": kind.api_version.rpartition("/")[0],
            "resource": kind.plural,
            "namespace": attempt.namespace,
        }
        spec: Object = {"user": user, "groups": groups, "resourceAttributes": attributes}
        review = {"apiVersion": _REVIEW.api_version, "kind": _REVIEW.kind, "spec": spec}
        answer = cluster.review(_REVIEW, review, timeout_seconds=_SECONDS)
        allowed = look_up(answer, "status", "allowed") is True
        if attempt.words != _POLICY and allowed is bool(attempt.words):
            wrong.append(f"{attempt.what}: {'allowed' if allowed else 'refused'}")
    told = f"differs: {', '.join(wrong)}" if wrong else "has the rights of the file"
    evidence = f"no request could be tried on its behalf; a review, which is weaker, {told}"
    return Finding(check="access", subject=subject, state="not run", evidence=evidence)


def _tries(plan: ClusterPlan, policy: AccessPolicyPlan) -> Iterator[_Try]:
    """Yield what a role may do, then its neighbors that it must not do."""
    namespace, queueing = policy.namespaces[0], plan.part(QueueingPlan)
    resources = plan.access.queues.resources if plan.access.queues else ()
    if queueing is not None and namespace in queueing.namespaces:
        resources = queueing.gated_resources
    is_bound = bool(policy.sends_to) and policy.sends_to != _ANY
    queue = queueing.queues[0].name if queueing is not None else ""
    queue = policy.sends_to[0] if is_bound else queue

    def sends(what: str, words: str, place: str, queue: str) -> _Try:
        job = _job(plan, place, queue, resources[0] if resources else "cpu")
        return _Try(
            what=what, words=words, verb="create", kind=INDEXED_JOB, namespace=place, job=job
        )

    def asks(what: str, words: str, verb: str, kind: Kind, place: str) -> _Try:
        return _Try(what=what, words=words, verb=verb, kind=kind, namespace=place)

    if policy.sends_to:
        yield sends("sends a job", "", namespace, queue)
        if resources and (queueing is not None or is_bound):
            yield sends("sends a job without a queue", _POLICY, namespace, "")
        if is_bound:
            yield sends("sends a job to a queue of others", _POLICY, namespace, _STRANGER)
        yield asks("deletes the isolation", _POLICY, "delete", NETWORK_POLICY, namespace)
        yield sends("sends a job elsewhere", _RBAC, _ELSEWHERE, queue)
    else:
        yield asks("reads jobs", "", "list", INDEXED_JOB, namespace)
        yield sends("sends a job", _RBAC, namespace, queue)
    yield asks("reads Secrets of controllers", _RBAC, "list", SECRET, _ELSEWHERE)


def _job(plan: ClusterPlan, namespace: str, queue: str, device: str) -> Object:
    """Return a job that asks for a device in a queue, by a label or by its pods' annotation."""
    engine = plan.access.queues.engine if plan.access.queues else ""
    keys = [part.queue_annotation for part in all_parts() if part.name == engine]
    annotations = {key: queue for key in keys if key and queue}
    limits: Object = {"limits": {device: "1"}}
    container: Object = {"name": "main", "image": "example.com/none:1", "resources": limits}
    pod: Object = {"restartPolicy": "Never", "containers": [container]}
    # An engine whose pods name their queue schedules them, by its own name.
    pod = {**pod, "schedulerName": engine} if annotations else pod
    labels = {names.QUEUE_LABEL: queue} if queue else {}
    return {
        "apiVersion": INDEXED_JOB.api_version,
        "kind": INDEXED_JOB.kind,
        "metadata": {"name": _STRANGER, "namespace": namespace, "labels": labels},
        "spec": {"template": {"metadata": {"annotations": annotations}, "spec": pod}},
    }
