"""Objects as plain documents: immutable ConfigMaps, and Jobs that can be applied again."""

import json
from collections.abc import Mapping
from hashlib import sha256

from ultrascale.documents import Json, JsonObject, mapping, text

NAME_LABEL = "app.kubernetes.io/name"
# Number of digits of the hash in a ConfigMap's name.
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
    """Return the labels of all objects of ``component``."""
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
    """Return an object of one of Kubernetes' kinds.

    Args:
        kind: The kind.
        name: Its name.
        namespace: Its namespace; None for kinds that are in none.
        component: Component in its labels; by default its name.
        own_labels: Its labels, instead of the labels of a component.
        annotations: Its annotations.
        fields: Further fields. Fields that are None, at any depth, are left out.
    """
    metadata: dict[str, Json] = {
        "name": name,
        "namespace": namespace,
        "labels": (labels(component or name) if own_labels is None else own_labels) or None,
        "annotations": annotations,
    }
    document: dict[str, Json] = {"apiVersion": _API_VERSIONS[kind], "kind": kind}
    return document | {"metadata": _with_sorted_keys(metadata), **_with_sorted_keys(fields)}


def _with_sorted_keys(value: JsonObject) -> dict[str, Json]:
    """Return ``value`` with sorted keys, so that an order of keys never makes an object differ."""
    return {key: _tidied_field(value[key]) for key in sorted(value) if value[key] is not None}


def _tidied_field(value: Json) -> Json:
    if isinstance(value, Mapping):
        return _with_sorted_keys(value)
    if isinstance(value, list | tuple):
        return [_tidied_field(item) for item in value]
    return value


def config_map(name: str, *, namespace: str, component: str, data: Mapping[str, str]) -> JsonObject:
    """Return an immutable ConfigMap, whose name ends in a hash of its data.

    Changed data makes a new ConfigMap: new pods mount it, and existing pods keep the ConfigMap that
    they were made with. Old ConfigMaps stay in the cluster.

    Source: https://kubernetes.io/docs/concepts/configuration/configmap/#configmap-immutable

    Args:
        name: Prefix of its name.
        namespace: Its namespace.
        component: Component in its labels.
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
    """Return an object; a Job's name is extended by a digest of its pod template.

    A Job's template is immutable, so a changed template must make a new Job. Charts give Jobs plain
    names, as later steps may change the template: the image cache replaces image names.
    """
    if (text(document, "apiVersion"), text(document, "kind")) != ("batch/v1", "Job"):
        return document
    named = job_name(name_of(document), mapping(document, "spec", "template"))
    return {**document, "metadata": {**mapping(document, "metadata"), "name": named}}


def job_name(name: str, template: JsonObject) -> str:
    """Return ``name`` with a digest of ``template``, the pod template in the manifest."""
    digest = sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()[:8]
    return f"{name}-{digest}"
