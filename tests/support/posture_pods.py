"""The security of what runs in the cluster: each rule yields its findings as sentences."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tests.support.kubernetes_schemas import Document, containers, named, pod_spec

Rule = Callable[[Document, Document], bool]

# Namespaces of EKS's own.
_PROVIDED = ("kube-system", "default")
_BASELINE_CAPABILITIES = frozenset(
    {
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    }
)
_RESTRICTED_VOLUMES = frozenset(
    {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "projected", "secret"}
    | {"persistentVolumeClaim"}
)
_FLOATING = ("latest", "stable", "main", "master", "edge", "nightly", "dev")


def _either(pod: Document, container: Document, key: str) -> Any:
    own = container.get("securityContext", {})
    return own.get(key, pod.get("securityContext", {}).get(key))


def _host_paths(pod: Document, container: Document) -> list[str]:
    mounted = {mount["name"] for mount in container.get("volumeMounts", ())}
    return [
        volume["hostPath"]["path"]
        for volume in pod.get("volumes", ())
        if "hostPath" in volume and volume["name"] in mounted
    ]


def _own(container: Document) -> Document:
    return container.get("securityContext", {})


# Whether a container of a pod breaks each.
CONTAINER_RULES: Mapping[str, Rule] = {
    "non-root": lambda pod, c: (
        _either(pod, c, "runAsNonRoot") is not True or _either(pod, c, "runAsUser") == 0
    ),
    "read-only root": lambda _, c: _own(c).get("readOnlyRootFilesystem") is not True,
    "escalation": lambda _, c: _own(c).get("allowPrivilegeEscalation") is not False,
    "capabilities": lambda _, c: _own(c).get("capabilities", {}).get("drop") != ["ALL"],
    "seccomp": lambda pod, c: (
        (_either(pod, c, "seccompProfile") or {}).get("type") not in ("RuntimeDefault", "Localhost")
    ),
    "privileged": lambda _, c: _own(c).get("privileged") is True,
}


def _broken(pod: Document, container: Document) -> Iterator[str]:
    """Yield the rules that a container breaks; those that have degrees, with what it takes."""
    yield from (name for name, broken in CONTAINER_RULES.items() if broken(pod, container))
    added = _own(container).get("capabilities", {}).get("add", ())
    shared = (key for key in ("hostNetwork", "hostPID", "hostIPC") if pod.get(key) is True)
    yield from (f"capabilities {each}" for each in added)
    yield from (f"host namespace {each}" for each in shared)
    yield from (f"host path {each}" for each in _host_paths(pod, container))


def container_findings(documents: Sequence[Document]) -> Iterator[tuple[str, str, str]]:
    """Yield the object, the container and the rule wherever a container breaks one."""
    for document in documents:
        for container in containers(document):
            for rule in _broken(pod_spec(document) or {}, container):
                yield named(document), container["name"], rule


def admission_findings(documents: Sequence[Document]) -> Iterator[str]:
    """Find pods that the Pod Security of their own namespace would keep out.

    It knows what a pod of ours could do wrong, not all of the standards.

    Source: https://kubernetes.io/docs/concepts/security/pod-security-standards/
    """
    levels = {
        d["metadata"]["name"]: d["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
        for d in documents
        if d["kind"] == "Namespace"
    }
    for document in documents:
        pod = pod_spec(document)
        level = levels.get(document["metadata"].get("namespace", ""))
        if pod is None or level is None:
            continue
        refused = {rule for _, _, rule in container_findings([document])}
        added = {
            capability
            for container in containers(document)
            for capability in _own(container).get("capabilities", {}).get("add", ())
        }
        keeps_out = {"privileged", "host namespace", "host path"}
        if level == "restricted":
            keeps_out |= {"non-root", "escalation", "seccomp", "capabilities"}
            kinds = {key for v in pod.get("volumes", ()) for key in v if key != "name"}
            yield from (f"{named(document)}: volume {k}" for k in kinds - _RESTRICTED_VOLUMES)
        yield from (
            f"{named(document)}: {rule} in a {level} namespace"
            for rule in refused
            if rule.startswith(tuple(keeps_out))
        )
        yield from (f"{named(document)}: adds {c}" for c in added - _BASELINE_CAPABILITIES)


def namespace_findings(documents: Sequence[Document]) -> Iterator[str]:
    """Find namespaces that enforce nothing, and those whose pods every neighbour reaches."""
    closed = {
        document["metadata"]["namespace"]
        for document in documents
        if document["kind"] == "NetworkPolicy"
        and (
            document["spec"]["podSelector"] == {}
            # Of a large cluster, which `plan` says: the policy is there and selects no job's pods.
            or document["metadata"]["name"] == "default-deny-ingress"
        )
        and "Ingress" in document["spec"]["policyTypes"]
        and not document["spec"].get("ingress")
    }
    made: set[str] = set()
    for document in documents:
        if document["kind"] != "Namespace":
            continue
        name = document["metadata"]["name"]
        made.add(name)
        labels = document["metadata"].get("labels", {})
        if labels.get("pod-security.kubernetes.io/enforce") not in ("baseline", "restricted"):
            yield f"{name}: enforces no Pod Security"
        if not labels.get("pod-security.kubernetes.io/enforce-version", "").startswith("v1."):
            yield f"{name}: what it enforces changes with the cluster's version"
        if name not in closed:
            yield f"{name}: every pod of the cluster reaches its pods"
    for document in documents:
        namespace = document["metadata"].get("namespace")
        if namespace is not None and namespace not in {*made, *_PROVIDED}:
            yield f"{named(document)}: its namespace is not made here"


def exposure_findings(documents: Sequence[Document]) -> Iterator[str]:
    """Find what the cluster would open to its surroundings."""
    for document in documents:
        kind, spec = document["kind"], document.get("spec", {})
        if kind in ("Ingress", "Gateway"):
            yield f"{named(document)}: is reached from outside"
        if kind == "Service" and (
            spec.get("type", "ClusterIP") != "ClusterIP" or spec.get("externalIPs")
        ):
            yield f"{named(document)}: is reached from outside"
        for container in containers(document):
            hosted = any("hostPort" in port for port in container.get("ports", ()))
            if hosted and (pod_spec(document) or {}).get("hostNetwork") is not True:
                yield f"{named(document)}: takes a port of its node"


def image_findings(documents: Sequence[Document]) -> Iterator[str]:
    """Find images that may be another one tomorrow."""
    for document in documents:
        for container in containers(document):
            name, _, digest = container["image"].partition("@")
            tag = name.rpartition("/")[2].partition(":")[2]
            floats = not tag or not any(c.isdigit() for c in tag) or tag in _FLOATING
            if floats and not digest.startswith("sha256:"):
                yield f"{named(document)}: image {container['image']} floats"


def token_findings(documents: Sequence[Document]) -> Iterator[str]:
    """Find pods that carry credentials of the cluster without a right to use them for."""
    bound = {
        (subject["namespace"], subject["name"])
        for document in documents
        for subject in document.get("subjects", ())
        if subject["kind"] == "ServiceAccount"
    }
    silent = {
        (d["metadata"]["namespace"], d["metadata"]["name"])
        for d in documents
        if d["kind"] == "ServiceAccount" and d.get("automountServiceAccountToken") is False
    }
    for document in documents:
        pod = pod_spec(document)
        if pod is None:
            continue
        account = (document["metadata"].get("namespace", ""), pod.get("serviceAccountName"))
        if account in bound or pod.get("automountServiceAccountToken") is False:
            continue
        if "automountServiceAccountToken" in pod or account not in silent:
            yield f"{named(document)}: carries a token for nothing"


_SENSITIVE = frozenset(
    {
        "secrets",
        "pods/exec",
        "pods/attach",
        "pods/portforward",
        "pods/ephemeralcontainers",
        "nodes/proxy",
        "serviceaccounts/token",
        "roles",
        "rolebindings",
        "clusterroles",
        "clusterrolebindings",
        "mutatingwebhookconfigurations",
        "validatingwebhookconfigurations",
        "certificatesigningrequests/approval",
    }
)
_READING = frozenset({"get", "list", "watch"})
_HARMLESS_TO_READ = frozenset({"mutatingwebhookconfigurations", "validatingwebhookconfigurations"})
_NOBODY = ("system:anonymous", "system:unauthenticated", "system:authenticated", "system:masters")


def right_findings(documents: Sequence[Document]) -> Iterator[tuple[str, str]]:
    """Yield each role and what it grants beyond its own objects: wildcards, secrets, other roles.

    Source: https://kubernetes.io/docs/concepts/security/rbac-good-practices/
    """
    for document in documents:
        name = document["metadata"]["name"]
        if document["kind"] in ("Role", "ClusterRole"):
            for rule in document.get("rules", ()):
                yield from ((name, granted) for granted in _grants(rule))
        if document["kind"] in ("RoleBinding", "ClusterRoleBinding"):
            if document["roleRef"]["name"] in ("cluster-admin", "admin", "edit"):
                yield name, document["roleRef"]["name"]
            for subject in document.get("subjects", ()):
                if subject["name"] in _NOBODY or (
                    subject["kind"] == "ServiceAccount" and subject["name"] == "default"
                ):
                    yield name, subject["name"]


def _grants(rule: Document) -> Iterator[str]:
    verbs = {*rule["verbs"]}
    for key in ("verbs", "resources", "apiGroups", "nonResourceURLs"):
        if "*" in rule.get(key, ()):
            yield f"* of {key}"
    yield from sorted(verbs & {"bind", "escalate", "impersonate"})
    for resource in _SENSITIVE & {*rule.get("resources", ())}:
        if not (resource in _HARMLESS_TO_READ and verbs <= _READING):
            yield resource


def node_class_findings(documents: Sequence[Document]) -> Iterator[str]:
    """Find classes whose nodes pods could impersonate, that lie open or have plain volumes.

    EKS Auto Mode takes none of these: its nodes have tokens, one hop and encrypted volumes.
    Source: https://docs.aws.amazon.com/eks/latest/userguide/auto-security.html
    """
    for document in documents:
        if document["kind"] != "EC2NodeClass":
            continue
        spec = document["spec"]
        options = spec.get("metadataOptions", {})
        if options.get("httpTokens") != "required" or options.get("httpPutResponseHopLimit") != 1:
            yield f"{named(document)}: pods reach the instance metadata"
        disks = spec.get("blockDeviceMappings", [])
        if not disks or any(disk["ebs"].get("encrypted") is not True for disk in disks):
            yield f"{named(document)}: volumes are not encrypted"
        if spec.get("associatePublicIPAddress") is True:
            yield f"{named(document)}: nodes have public addresses"


def storage_class_findings(documents: Sequence[Document]) -> Iterator[str]:
    """Find classes whose volumes are plain, wherever the account does not encrypt them anyway.

    Source: https://github.com/kubernetes-sigs/aws-ebs-csi-driver/blob/master/docs/parameters.md
    """
    for document in documents:
        if (
            document["kind"] == "StorageClass"
            and document["provisioner"].startswith("ebs.csi.")
            and document.get("parameters", {}).get("encrypted") != "true"
        ):
            yield f"{named(document)}: volumes are not encrypted"


def by_container(documents: Sequence[Document]) -> Mapping[str, set[str]]:
    """Return the rules that each container breaks, by its name."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for _, container, rule in container_findings(documents):
        found[container].add(rule)
    return found
