"""Rules for rendered manifests: Kubernetes' schemas and those of this project.

Each rule is a function that returns its findings as sentences, so that a test of one chart and a
test of a whole cluster ask for the same thing.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, cast

import kubernetes_validate
from kubernetes_validate import utils as _schemas

from ultrascale.catalog.registries import PULL_THROUGH
from ultrascale.catalog.versions import images, kube_scheduler
from ultrascale.plan.names import ROLE_LABEL, SYSTEM_ROLE

# It would read a megabyte of definitions anew for each object.
_schemas.schema_contents = cache(_schemas.schema_contents)

Document = Mapping[str, Any]

MINORS = ("1.35", "1.36")
PAYLOAD_LIMIT_BYTES = 100_000

# What Kubernetes or EKS puts into every cluster, so that no chart has to.
PROVIDED = frozenset(
    {
        ("Namespace", "", "kube-system"),
        ("Namespace", "", "default"),
        ("PriorityClass", "", "system-cluster-critical"),
        ("PriorityClass", "", "system-node-critical"),
        ("ClusterRole", "", "system:kube-scheduler"),
        ("ClusterRole", "", "system:volume-scheduler"),
        ("Role", "kube-system", "extension-apiserver-authentication-reader"),
    }
)
_CORE_GROUPS = ("", "apps", "batch", "autoscaling", "policy")
_POD_TEMPLATES = ("Deployment", "StatefulSet", "DaemonSet", "Job")
_CONTROLLERS = ("Deployment", "StatefulSet")


def named(document: Document) -> str:
    """Return `Kind namespace/name`, as a finding names its object."""
    metadata = document.get("metadata", {})
    where = f"{metadata['namespace']}/" if "namespace" in metadata else ""
    return f"{document.get('kind')} {where}{metadata.get('name')}"


def is_core(document: Document) -> bool:
    """Return whether the kind is Kubernetes' own. Every other one has a CRD."""
    group = document["apiVersion"].rpartition("/")[0]
    return group in _CORE_GROUPS or group.endswith(
        (
            "rbac.authorization.k8s.io",
            "networking.k8s.io",
            "storage.k8s.io",
            "scheduling.k8s.io",
            "coordination.k8s.io",
            "apiextensions.k8s.io",
            "apiregistration.k8s.io",
            "admissionregistration.k8s.io",
            "flowcontrol.apiserver.k8s.io",
            "resource.k8s.io",
        )
    )


def validate_core(document: Document, minor: str) -> list[str]:
    """Return why the API server of ``minor`` would refuse a core object; empty if it would not.

    The schemas are strict: an unknown or misspelt field is a finding.
    """
    try:
        kubernetes_validate.validate(dict(document), minor, strict=True)
    except kubernetes_validate.SchemaNotFoundError:
        return [f"{named(document)}: {document['apiVersion']} is not served by {minor}"]
    except kubernetes_validate.ValidationError as error:
        path = ".".join(str(part) for part in error.path)
        return [f"{named(document)}: {path}: {error.message}"]
    return []


def pod_spec(document: Document) -> Document | None:
    """Return the spec of the pods that the object makes, or None if it makes none."""
    kind = document["kind"]
    if kind == "Pod":
        return document["spec"]
    if kind == "CronJob":
        return document["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return document["spec"]["template"]["spec"] if kind in _POD_TEMPLATES else None


def containers(document: Document) -> Iterator[Document]:
    """Yield the containers of the object's pods, init containers among them."""
    spec = pod_spec(document) or {}
    yield from spec.get("initContainers", ())
    yield from spec.get("containers", ())


def resource_findings(document: Document) -> list[str]:
    """Find containers that the scheduler cannot place or that may take a node's whole memory."""
    return [
        f"{named(document)}: container {container['name']} has no {part} {resource}"
        for container in containers(document)
        for part, resource in (("requests", "cpu"), ("requests", "memory"), ("limits", "memory"))
        if resource not in container.get("resources", {}).get(part, {})
    ]


def image_findings(document: Document, *, also: Collection[str] = ()) -> list[str]:
    """Find images that are not pinned in `ultrascale.catalog.versions`, or not in ``also``.

    A pin without a registry host (EKS's own differ by Region) matches behind any host.
    """
    return [
        f"{named(document)}: image {container['image']} is not pinned in catalog/images.csv"
        for container in containers(document)
        if container["image"] not in also and not _is_pinned(container["image"])
    ]


def published(text: str) -> str:
    """Return ``text`` with images from a cache of ours named as their publishers have them."""
    upstreams = {kind: upstream for upstream, kind in PULL_THROUGH.items()}
    return re.sub(
        r"[^\s\"']+/cache-[0-9a-f]{8}/([a-z0-9-]+)/", lambda found: f"{upstreams[found[1]]}/", text
    )


def _is_pinned(reference: str) -> bool:
    reference = published(reference)
    pins = (*images().values(), *(kube_scheduler(minor) for minor in MINORS))
    return any(
        reference == pin.reference or reference.endswith(f"/{pin.reference}") for pin in pins
    )


def root_findings(document: Document, *, exceptions: Collection[str] = ()) -> list[str]:
    """Find containers that may run as root; ``exceptions`` are container names with a reason."""
    pod = (pod_spec(document) or {}).get("securityContext", {})
    return [
        f"{named(document)}: container {container['name']} may run as root"
        for container in containers(document)
        if container["name"] not in exceptions
        and not container.get("securityContext", {}).get("runAsNonRoot", pod.get("runAsNonRoot"))
    ]


def placement_findings(document: Document) -> list[str]:
    """Find Deployments and StatefulSets that could land on an accelerated node."""
    spec = pod_spec(document)
    if document["kind"] not in _CONTROLLERS or spec is None:
        return []
    required = (
        spec.get("affinity", {})
        .get("nodeAffinity", {})
        .get("requiredDuringSchedulingIgnoredDuringExecution", {})
        .get("nodeSelectorTerms", [])
    )
    wanted = {"key": ROLE_LABEL, "operator": "In", "values": [SYSTEM_ROLE]}
    pinned = bool(required) and all(wanted in term["matchExpressions"] for term in required)
    if pinned or spec.get("nodeSelector", {}).get(ROLE_LABEL) == SYSTEM_ROLE:
        return []
    return [f"{named(document)}: is not kept on the system pool"]


def selector_findings(document: Document) -> list[str]:
    """Find selectors that hang on cdk8s' construct address, and those that select nothing."""
    findings = [
        f"{named(document)}: selector holds {value!r}, which changes with the construct tree"
        for value in _strings(document.get("spec", {}).get("selector"))
        if value.startswith("cdk8s.io/")
    ]
    if document["kind"] in _POD_TEMPLATES and document["kind"] != "Job":
        wanted = document["spec"]["selector"].get("matchLabels", {})
        carried = document["spec"]["template"]["metadata"].get("labels", {})
        if not wanted or wanted.items() - carried.items():
            findings.append(f"{named(document)}: selector {wanted} does not match its own pods")
    return findings


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for pair in cast("Mapping[object, object]", value).items():
            yield from _strings(pair)
    elif isinstance(value, Sequence):
        for item in cast("Sequence[object]", value):
            yield from _strings(item)


def defined(documents: Iterable[Document]) -> set[tuple[str, str, str]]:
    """Return the objects as (kind, namespace, name), as `known` takes them."""
    return {
        (d["kind"], d["metadata"].get("namespace", ""), d["metadata"]["name"]) for d in documents
    }


def reference_findings(
    documents: Iterable[Document], *, known: Collection[tuple[str, str, str]] = ()
) -> list[str]:
    """Find names that nothing defines: accounts, config maps, secrets, roles, namespaces, classes.

    Args:
        documents: The objects of a chart or of a whole cluster.
        known: Objects that exist without them, as (kind, namespace, name).
    """
    everything = list(documents)
    existing = {*PROVIDED, *known, *defined(everything)}
    return [
        f"{named(document)}: nothing defines {kind} {namespace}/{name}".replace(" /", " ")
        for document in everything
        for kind, namespace, name in _references(document)
        if (kind, namespace, name) not in existing
    ]


def _references(document: Document) -> Iterator[tuple[str, str, str]]:
    namespace = document["metadata"].get("namespace", "")
    if namespace:
        yield "Namespace", "", namespace
    yield from _pod_references(pod_spec(document) or {}, namespace)
    if "roleRef" in document:
        role = document["roleRef"]
        yield role["kind"], namespace if role["kind"] == "Role" else "", role["name"]
        for subject in document["subjects"]:
            if subject["kind"] == "ServiceAccount":
                yield "ServiceAccount", subject["namespace"], subject["name"]


def _pod_references(spec: Document, namespace: str) -> Iterator[tuple[str, str, str]]:
    if "serviceAccountName" in spec:
        yield "ServiceAccount", namespace, spec["serviceAccountName"]
    if "priorityClassName" in spec:
        yield "PriorityClass", "", spec["priorityClassName"]
    for volume in spec.get("volumes", ()):
        if "configMap" in volume:
            yield "ConfigMap", namespace, volume["configMap"]["name"]
        if "secret" in volume:
            yield "Secret", namespace, volume["secret"]["secretName"]
        if "persistentVolumeClaim" in volume:
            claim = volume["persistentVolumeClaim"]["claimName"]
            yield "PersistentVolumeClaim", namespace, claim


def token_findings(documents: Sequence[Document]) -> list[str]:
    """Find pods that were given a role but no token to use it with."""
    bound = {
        (subject["namespace"], subject["name"])
        for document in documents
        for subject in document.get("subjects", ())
        if subject["kind"] == "ServiceAccount"
    }
    tokenless = {
        (document["metadata"]["namespace"], document["metadata"]["name"])
        for document in documents
        if document["kind"] == "ServiceAccount"
        and document.get("automountServiceAccountToken") is False
    }
    found: list[str] = []
    for document in documents:
        spec = pod_spec(document) or {}
        account = (document["metadata"].get("namespace", ""), spec.get("serviceAccountName"))
        mounted = spec.get("automountServiceAccountToken", account not in tokenless)
        if account in bound and not mounted:
            found.append(f"{named(document)}: {account[1]} has roles, but its token is not mounted")
    return found


def payload_bytes(documents: Sequence[Document]) -> int:
    """Return the size of the objects as compact JSON, as the kubectl provider carries them."""
    return len(json.dumps(documents, separators=(",", ":")).encode())


def findings(
    documents: Sequence[Document],
    *,
    minors: Iterable[str] = MINORS,
    known: Collection[tuple[str, str, str]] = (),
    also_pinned: Collection[str] = (),
    root: Collection[str] = (),
) -> list[str]:
    """Return what every rule of this module finds in the objects of one chart.

    Args:
        documents: The objects.
        minors: Kubernetes minors to validate against.
        known: See `reference_findings`.
        also_pinned: Images that the test itself made up.
        root: Names of the containers that have a reason to run as root.
    """
    found = [
        finding
        for document in documents
        for finding in (
            *(f for m in minors if is_core(document) for f in validate_core(document, m)),
            *resource_findings(document),
            *image_findings(document, also=also_pinned),
            *root_findings(document, exceptions=root),
            *placement_findings(document),
            *selector_findings(document),
        )
    ]
    size = payload_bytes(documents)
    if size >= PAYLOAD_LIMIT_BYTES:
        found.append(f"{size} bytes are too many for one custom resource")
    return [*found, *token_findings(documents), *reference_findings(documents, known=known)]
