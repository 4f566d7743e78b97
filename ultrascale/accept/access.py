"""Rights of the file's roles, tried by impersonated dry runs beside what the roles may do.

Sources:
    https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation
    https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access
"""

from collections.abc import Callable, Iterator, Sequence
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
    right: tuple[str, Kind, str]  # Verb, kind and namespace
    ask: Callable[[Cluster], object]  # Sends it as a dry run


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
        if attempt.words == _POLICY:
            continue
        verb, kind, namespace = attempt.right
        group = kind.api_version.rpartition("/")[0]
        attributes = {"verb": verb, "group": group, "resource": kind.plural}
        spec: Object = {
            "user": user,
            "groups": groups,
            "resourceAttributes": {**attributes, "namespace": namespace},
        }
        review = {"apiVersion": _REVIEW.api_version, "kind": _REVIEW.kind, "spec": spec}
        answer = cluster.review(_REVIEW, review, timeout_seconds=_SECONDS)
        if (look_up(answer, "status", "allowed") is True) is not (not attempt.words):
            wrong.append(f"{attempt.what}: {'refused' if not attempt.words else 'allowed'}")
    note = "no request could be tried on its behalf; a review, which is weaker, "
    told = f"{note}{'differs: ' + ', '.join(wrong) if wrong else 'has the rights of the file'}"
    return Finding(check="access", subject=subject, state="not run", evidence=told)


def _tries(plan: ClusterPlan, policy: AccessPolicyPlan) -> Iterator[_Try]:
    """Yield what a role may do, then its neighbours that it must not do."""
    namespace, queueing = policy.namespaces[0], plan.part(QueueingPlan)
    resources = plan.access.queues.resources if plan.access.queues else ()
    if queueing is not None and namespace in queueing.namespaces:
        resources = queueing.gated_resources
    queue = policy.sends_to[0] if policy.sends_to and policy.sends_to != _ANY else ""
    if queueing is not None:
        queue = queue or queueing.queues[0].name
    device = resources[0] if resources else "cpu"

    def sends(what: str, words: str, place: str, queue: str) -> _Try:
        def ask(person: Cluster) -> object:
            return person.create(INDEXED_JOB, place, _job(place, queue, device), dry_run=True)

        return _Try(what=what, words=words, right=("create", INDEXED_JOB, place), ask=ask)

    def reads(what: str, words: str, place: str, kind: Kind) -> _Try:
        def ask(person: Cluster) -> object:
            return person.get(kind.path(place), {"limit": "1"})

        return _Try(what=what, words=words, right=("list", kind, place), ask=ask)

    if not policy.sends_to:
        yield reads("reads jobs", "", namespace, INDEXED_JOB)
        yield sends("sends a job", _RBAC, namespace, queue)
    else:
        yield sends("sends a job", "", namespace, queue)
        if resources and (queueing is not None or policy.sends_to != _ANY):
            yield sends("sends a job without a queue", _POLICY, namespace, "")
        if policy.sends_to != _ANY:
            yield sends("sends a job to a queue of others", _POLICY, namespace, _STRANGER)
        yield _Try(
            what="deletes the isolation",
            words=_POLICY,
            right=("delete", NETWORK_POLICY, namespace),
            ask=lambda person: person.rehearse_deletion(NETWORK_POLICY, namespace, _ISOLATION),
        )
        yield sends("sends a job elsewhere", _RBAC, _ELSEWHERE, queue)
    yield reads("reads Secrets of controllers", _RBAC, _ELSEWHERE, SECRET)


def _job(namespace: str, queue: str, device: str) -> Object:
    annotations = {key: queue for part in all_parts() if queue and (key := part.queue_annotation)}
    container = {
        "name": "main",
        "image": "example.com/none:1",
        "resources": {"limits": {device: "1"}},
    }
    pod = {"restartPolicy": "Never", "containers": [container]}
    labels = {names.QUEUE_LABEL: queue} if queue else {}
    template = {"metadata": {"annotations": annotations}, "spec": pod}
    return {
        "apiVersion": INDEXED_JOB.api_version,
        "kind": INDEXED_JOB.kind,
        "metadata": {"name": _STRANGER, "namespace": namespace, "labels": labels},
        "spec": {"template": template},
    }
