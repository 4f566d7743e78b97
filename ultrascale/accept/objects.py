"""Level `objects`: the objects of the templates and of Helm's releases, as the server has them."""

import base64
import gzip
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import yaml

from ultrascale.accept import compare
from ultrascale.accept.model import Check, Level, Run
from ultrascale.cluster_api import objects as kinds
from ultrascale.cluster_api.objects import Kind, Object
from ultrascale.cluster_api.server import FORBIDDEN, Cluster
from ultrascale.documents import look_up, mapping, objects, parse_json, text
from ultrascale.errors import RefusedError
from ultrascale.findings import Finding, Issue, State, finding
from ultrascale.guard.objects import read_objects
from ultrascale.guard.sources import read_assembly
from ultrascale.guard.templates import World, text_of, world
from ultrascale.plan import names
from ultrascale.plan.model import ClusterPlan
from ultrascale.plan.stacks import not_due

_LEVEL: Level = "objects"
_CHART = "Custom::AWSCDK-EKS-HelmChart"
_POLICY = "ValidatingAdmissionPolicy"
_ADMISSION = "admissionregistration.k8s.io/v1"
_PART_OF = "app.kubernetes.io/part-of=ultrascale"
_SLICES = Kind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices")
_SHOWN = 5
# Kinds whose objects cost money or refuse requests after they left the file.
_LASTING: Mapping[str, Sequence[str]] = {
    "v1": ("Namespace", "PersistentVolumeClaim"),
    "apps/v1": ("DaemonSet", "Deployment", "StatefulSet"),
    _ADMISSION: (
        "MutatingWebhookConfiguration",
        _POLICY,
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
    ),
    "networking.k8s.io/v1": ("NetworkPolicy",),
    "rbac.authorization.k8s.io/v1": ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
    "karpenter.sh/v1": ("NodePool",),
    "karpenter.k8s.aws/v1": ("EC2NodeClass",),
    "eks.amazonaws.com/v1": ("NodeClass",),
}


def checks(plan: ClusterPlan) -> Iterator[Check]:
    """Yield the checks of a cluster's objects."""
    for name, title, run in (
        ("objects", "objects of the stacks are as the templates have them", _object_findings),
        ("leftovers", "no object is left that the file no longer has", _left_findings),
        ("releases", "Helm's releases have our versions and values", _release_findings),
        ("webhooks", "each webhook has a server that is ready", _webhook_findings),
        ("policies", "the server can evaluate each policy", _policy_findings),
    ):
        yield Check(level=_LEVEL, name=name, subject=plan.name, title=title, run=run)


class _Server:
    """Objects of a server, and how they differ from the file's."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.has_any = False  # Whether one of the objects is there
        self.weak: set[str] = set()  # Kinds of which only stated fields were compared
        self.values: dict[str, str] = {}  # Values of the templates' references
        self._served: dict[str, Mapping[str, Kind]] = {}

    def kind(self, version: str, kind: str) -> Kind | None:
        """Return a kind; None where it is not served."""
        if version not in self._served:
            self._served[version] = self.cluster.served_kinds(version)
        return self._served[version].get(kind)

    def judge(self, manifest: Object, namespace: str = "") -> tuple[State, str]:
        """Return the state of an object, and its evidence; empty where it is as the file has it."""
        version, name = text(manifest, "apiVersion"), kinds.name(manifest)
        kind = self.kind(version, text(manifest, "kind"))
        if kind is None:
            return "failed", f"{version} is not served: its CustomResourceDefinition is missing"
        namespace = text(manifest, "metadata", "namespace") or namespace
        live = self.cluster.find(kind.path(namespace, name))
        if live is None:
            ends = look_up(manifest, "spec", "ttlSecondsAfterFinished") is not None
            return ("pass", "") if ends else ("failed", "it is not there")
        self.has_any = True
        wanted = compare.fill(manifest, live, self.values)
        try:
            answer = self.cluster.apply(kind, namespace, wanted, dry_run=True, force=True)
            whole, stated = True, compare.stated_fields(answer)
        except RefusedError as error:
            if error.status != FORBIDDEN or _POLICY in error.message:
                return "failed", f"the server refuses it as the file has it: {error.message}"
            self.weak.add(kind.resource)
            whole, stated = False, compare.stated_fields(wanted)
        told = (
            *compare.differences(stated, live, whole=whole),
            *compare.added(compare.stated_fields(wanted), live),
        )
        wrong = [str(field) for field in told if not field.is_controllers(kind.kind)]
        more = f"; and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
        return ("differs" if wrong else "pass"), "; ".join(wrong[:_SHOWN]) + more

    def note(self) -> str:
        """Return the kinds of which only stated fields were compared, as a note."""
        weaker = ", which is weaker: no right to patch "
        return f"; stated fields alone{weaker}{', '.join(sorted(self.weak))}" if self.weak else ""


def _world(run: Run) -> World:
    return world(read_assembly(run.assembly))


def _object_findings(run: Run) -> Iterator[Finding]:
    server, late = _Server(run.cluster), not_due(run.plan, run.at)
    fine: Counter[str] = Counter()
    wrong: list[Finding] = []
    told: set[str] = set()
    for applied in read_objects(_world(run)).by_id.values():
        stack, fix = applied.holder[0], None
        try:
            state, evidence = server.judge(applied.body)
        except RefusedError as error:
            if error.status != FORBIDDEN:
                raise
            state, evidence = "not run", str(error)
        if state == "failed" and stack in late:
            state, evidence = "not run", f"{stack} waits for a window of its nodes"
        if state == "pass":
            fine[stack] += 1
            continue
        if state != "not run" and stack not in told:
            told.add(stack)
            fix = f"deploy {stack} again, or take what was changed there into the file"
        subject = f"{applied.kind} {applied.whole_name}"
        wrong.append(
            Finding(check="objects", subject=subject, state=state, evidence=evidence, fix=fix)
        )
    if not server.has_any and all(finding.state == "failed" for finding in wrong):
        evidence = f"nothing of {run.file} is there: it was never deployed to this cluster"
        yield _failed("objects", run.plan.name, evidence)
        return
    yield from wrong
    for stack, count in fine.items():
        evidence = f"{count} objects are as the file has them{server.note()}"
        yield Finding(check="objects", subject=stack, state="pass", evidence=evidence)


def _left_findings(run: Run) -> Iterator[Finding]:
    """Yield objects of ours that no template has: CDK's `kubectl apply` deletes none."""
    server, wanted = _Server(run.cluster), read_objects(_world(run)).by_id
    versions: dict[str, set[str]] = {version: {*of} for version, of in _LASTING.items()}
    for applied in wanted.values():
        versions.setdefault(text(applied.body, "apiVersion"), set()).add(applied.kind)
    # A large cluster has thousands of objects of the kinds that all of ours have the label of.
    bare = {applied.kind for applied in wanted.values() if not _is_labeled(applied.body)}
    bare.update(*_LASTING.values())
    seen = 0
    for version, of in versions.items():
        for kind in filter(None, (server.kind(version, name) for name in sorted(of))):
            query = {} if kind.kind in bare else {"labelSelector": _PART_OF}
            for live in run.cluster.collection(kind, "", query):
                namespace = text(live, "metadata", "namespace")
                id = (kind.kind, namespace, kinds.name(live))
                seen += 1
                if id not in wanted and _is_ours(live):
                    yield Finding(
                        check="leftovers",
                        subject=f"{kind.kind} {'/'.join(filter(None, id[1:]))}",
                        state="differs",
                        evidence="an earlier deployment applied it, and the file has it no more",
                        fix="`kubectl delete` it, once nothing uses it",
                    )
    yield Finding(check="leftovers", subject="", state="pass", evidence=f"{seen} objects were seen")


def _is_ours(live: Object) -> bool:
    """Return whether stacks applied an object; those of jobs are their senders'."""
    applied = text(live, "metadata", "annotations", compare.LAST_APPLIED)
    marked = _is_labeled(live) or "ultrascale.dev/" in json.dumps(live)
    return bool(applied) and marked and not kinds.label(live, names.JOB_LABEL)


def _is_labeled(manifest: Object) -> bool:
    key, _, value = _PART_OF.partition("=")
    return kinds.label(manifest, key) == value


# --- Releases of Helm -----------------------------------------------------------------------------
# Source: https://helm.sh/docs/topics/advanced/#storage-backends


def _release_findings(run: Run) -> Iterator[Finding]:
    stacks = _world(run)
    for stack in stacks.templates:
        for id, body in stacks.resources(stack).items():
            if body["Type"] == _CHART:
                properties = stacks.properties((stack, id))
                release, namespace, version = (
                    text(properties, key) for key in ("Release", "Namespace", "Version")
                )
                values = parse_json(text_of(properties.get("Values", "{}")))
                yield from _of_release(run, release, namespace, version, values)


def _of_release(
    run: Run, release: str, namespace: str, version: str, values: Object
) -> Iterator[Finding]:
    """Yield how a release of Helm, and each object that it made, differs."""
    selector = {"labelSelector": f"owner=helm,name={release},status=deployed"}
    secrets = run.cluster.collection(kinds.SECRET, namespace, selector)
    name = f"release {namespace}/{release}"
    if not secrets:
        yield _failed("releases", name, "no deployed release of this name is there")
        return
    newest = max(secrets, key=lambda secret: int(kinds.label(secret, "version") or 0))
    packed = base64.b64decode(base64.b64decode(text(newest, "data", "release")))
    live = mapping(parse_json(gzip.decompress(packed)))
    server = _Server(run.cluster)
    wanted = compare.fill({"config": values}, {"config": mapping(live, "config")}, {})
    # Helm takes a version with a v and without.
    stated = dict(compare.fields({**wanted, "version": version.removeprefix("v")}))
    installed = text(live, "chart", "metadata", "version").removeprefix("v")
    answer: Object = {"config": mapping(live, "config"), "version": installed}
    wrong = [
        Issue(state="differs", evidence=str(field), fix="deploy its stack again")
        for field in compare.differences(stated, answer, whole=True)
    ]
    made: Sequence[Object] = [
        mapping(each) for each in yaml.load_all(text(live, "manifest"), yaml.CSafeLoader) if each
    ]
    for manifest in made:
        state, evidence = server.judge(manifest, namespace)
        if state != "pass":
            told = f"{text(manifest, 'kind')} {kinds.name(manifest)}: {evidence}"
            wrong.append(Issue(state=state, evidence=told, fix="deploy its stack again"))
    fine = f"{version} with our values, {len(made)} objects as it made them{server.note()}"
    yield finding("releases", name, wrong, fine=fine)


# --- Webhooks and policies ------------------------------------------------------------------------


def _webhook_findings(run: Run) -> Iterator[Finding]:
    """Yield webhooks without a ready server: with `failurePolicy: Fail` they refuse requests."""
    kept: dict[tuple[str, str], bool] = {}
    for kind in _LASTING[_ADMISSION]:
        if not kind.endswith("WebhookConfiguration"):
            continue
        served = Kind(_ADMISSION, kind, f"{kind.lower()}s", namespaced=False)
        for configuration in run.cluster.collection(served, "", {}):
            for webhook in objects(configuration, "webhooks"):
                service = mapping(webhook, "clientConfig", "service")
                at = (text(service, "namespace"), text(service, "name"))
                if service and at not in kept:
                    kept[at] = _is_ready(run.cluster, *at)
                if service and not kept[at]:
                    refuses = webhook.get("failurePolicy") != "Ignore"
                    yield Finding(
                        check="webhooks",
                        subject=f"{kinds.name(configuration)} {text(webhook, 'name')}",
                        state="failed" if refuses else "differs",
                        evidence=f"no pod behind Service {'/'.join(at)} is ready"
                        + (": the server refuses what it judges" if refuses else ""),
                        fix=f"look at the pods of namespace {at[0]}",
                    )
    if all(kept.values()):
        evidence = f"{len(kept)} Services of webhooks have ready pods"
        yield Finding(check="webhooks", subject="", state="pass", evidence=evidence)


def _is_ready(cluster: Cluster, namespace: str, service: str) -> bool:
    query = {"labelSelector": f"kubernetes.io/service-name={service}"}
    return any(
        look_up(endpoint, "conditions", "ready") is not False
        for piece in cluster.collection(_SLICES, namespace, query)
        for endpoint in objects(piece, "endpoints")
    )


def _policy_findings(run: Run) -> Iterator[Finding]:
    served = Kind(_ADMISSION, _POLICY, "validatingadmissionpolicies", namespaced=False)
    policies = run.cluster.collection(served, "", {"labelSelector": _PART_OF})
    for policy in policies:
        warnings = objects(policy, "status", "typeChecking", "expressionWarnings")
        for warning in warnings:
            told = f"{text(warning, 'fieldRef')}: {text(warning, 'warning')}"
            yield _failed("policies", kinds.name(policy), told)
        if "typeChecking" not in mapping(policy, "status"):
            yield Finding(
                check="policies",
                subject=kinds.name(policy),
                state="not run",
                evidence="the server has not checked its types yet",
            )
    evidence = f"{len(policies)} policies were seen"
    yield Finding(check="policies", subject="", state="pass", evidence=evidence)


def _failed(check: str, subject: str, evidence: str) -> Finding:
    return Finding(check=check, subject=subject, state="failed", evidence=evidence)
