"""Objects as plain documents, immutable ConfigMaps, and Jobs that are applied again."""

import json
from collections.abc import Mapping
from hashlib import sha256

from ultrascale.documents import Json, JsonObject, mapping, text

NAME_LABEL = "app.kubernetes.io/name"
# Of the hash in a ConfigMap's name.
_DIGITS = 10
_RBAC = "rbac.authorization.k8s.io/v1"
_API_VERSIONS: Mapping[str, str] = {
    "ClusterRole": _RBAC,
    "ClusterRoleBinding": _RBAC,
    "ConfigMap": "v1",
    "DaemonSet": "apps/v1",
    "Deployment": "apps/v1",
    "Job": "batch/v1",
    "Lease": "coordination.k8s.io/v1",
    "Namespace": "v1",
    "NetworkPolicy": "networking.k8s.io/v1",
    "PersistentVolume": "v1",
    "PersistentVolumeClaim": "v1",
    "PodDisruptionBudget": "policy/v1",
    "PriorityClass": "scheduling.k8s.io/v1",
    "Role": _RBAC,
    "RoleBinding": _RBAC,
    "Secret": "v1",
    "Service": "v1",
    "ServiceAccount": "v1",
}


def labels(component: str) -> dict[str, str]:
    """Return the labels of everything that belongs to ``component``."""
    return {NAME_LABEL: component, "app.kubernetes.io/part-of": "ultrascale"}


def manifest(
    kind: str,
    name: str,
    *,
    namespace: str | None = None,
    component: str | None = None,
    own_labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **fields: Json,
) -> JsonObject:
    """Return an object of a kind of Kubernetes' own.

    Args:
        kind: The kind.
        name: Its name.
        namespace: Its namespace; None for kinds that are in none.
        component: Component that it is labelled as a part of; its name unless given.
        own_labels: Its labels instead of those.
        annotations: Its annotations.
        fields: Its other fields. Fields that are None at any depth are left out.
    """
    metadata: dict[str, Json] = {
        "name": name,
        "namespace": namespace,
        "labels": (labels(component or name) if own_labels is None else own_labels) or None,
        "annotations": annotations,
    }
    document: dict[str, Json] = {"apiVersion": _API_VERSIONS[kind], "kind": kind}
    return document | {"metadata": _tidied(metadata), **_tidied(fields)}


def _tidied(value: JsonObject) -> dict[str, Json]:
    """Return ``value`` with sorted keys, which never say that an object has changed."""
    return {key: _tidied_field(value[key]) for key in sorted(value) if value[key] is not None}


def _tidied_field(value: Json) -> Json:
    if isinstance(value, Mapping):
        return _tidied(value)
    if isinstance(value, list | tuple):
        return [_tidied_field(item) for item in value]
    return value


def config_map(name: str, *, namespace: str, component: str, data: Mapping[str, str]) -> JsonObject:
    """Return an immutable ConfigMap, whose name ends in a hash of its data.

    With other data it is another ConfigMap: pods that mount it are made anew, and those that are
    there keep what they were made with. The old ones stay in the cluster.

    Source: https://kubernetes.io/docs/concepts/configuration/configmap/#configmap-immutable

    Args:
        name: What its name begins with.
        namespace: Its namespace.
        component: Component that it belongs to.
        data: Content of each file.
    """
    content = "".join(f"{key}\0{value}\0" for key, value in sorted(data.items()))
    full = f"{name}-{sha256(content.encode()).hexdigest()[:_DIGITS]}"
    return manifest(
        "ConfigMap", full, namespace=namespace, component=component, data=data, immutable=True
    )


def name_of(document: JsonObject) -> str:
    """Return the name of an object."""
    return text(document, "metadata", "name")


def named_by_template(document: JsonObject) -> JsonObject:
    """Return an object, a Job under its name and a digest of its pod template.

    A Job's template is immutable, so another template must make another Job. Charts call theirs by
    plain names, as what follows may change the template: the cache of images names its images.
    """
    if (text(document, "apiVersion"), text(document, "kind")) != ("batch/v1", "Job"):
        return document
    named = job_name(name_of(document), mapping(document, "spec", "template"))
    return {**document, "metadata": {**mapping(document, "metadata"), "name": named}}


def job_name(name: str, template: JsonObject) -> str:
    """Return ``name`` with a digest of ``template``, the pod template as the manifest has it."""
    digest = sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()[:8]
    return f"{name}-{digest}"
