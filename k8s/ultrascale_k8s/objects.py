"""Objects that `cdk8s_plus_27` has no class for, immutable ConfigMaps, and Jobs applied again."""

import json
from collections.abc import Mapping
from hashlib import sha256

import cdk8s
from cdk8s_plus_27 import k8s as kube
from constructs import Construct

from ultrascale.documents import JsonObject, mapping, text
from ultrascale_k8s._pods import labels as labels_of

# Of the hash in a ConfigMap's name.
_DIGITS = 10


def define_object(scope: Construct, id: str, manifest: JsonObject) -> cdk8s.ApiObject:
    """Define the object that ``manifest`` describes, field for field.

    Args:
        scope: The chart.
        id: Construct id.
        manifest: A whole object, with ``apiVersion``, ``kind`` and ``metadata``.
    """
    resource = cdk8s.ApiObject(
        scope,
        id,
        api_version=text(manifest, "apiVersion"),
        kind=text(manifest, "kind"),
        metadata=cdk8s.ApiObjectMetadata(
            name=text(manifest, "metadata", "name"),
            namespace=text(manifest, "metadata", "namespace") or None,
            labels=_strings(manifest, "labels"),
            annotations=_strings(manifest, "annotations"),
        ),
    )
    for key, value in manifest.items():
        if key not in ("apiVersion", "kind", "metadata"):
            # The Python class takes no other fields than these three.
            resource.add_json_patch(cdk8s.JsonPatch.add(f"/{key}", value))
    return resource


def _strings(manifest: JsonObject, key: str) -> Mapping[str, str] | None:
    """Return labels or annotations; None where the manifest has none."""
    values = mapping(manifest, "metadata", key)
    return {name: str(value) for name, value in values.items()} or None


def define_config_map(
    scope: Construct, id: str, *, name: str, namespace: str, component: str, data: Mapping[str, str]
) -> str:
    """Define an immutable ConfigMap, and return its name, which ends in a hash of its data.

    With other data it is another ConfigMap: pods that mount it are made anew, and those that are
    there keep what they were made with. The old ones stay in the cluster.

    Source: https://kubernetes.io/docs/concepts/configuration/configmap/#configmap-immutable

    Args:
        scope: Parent.
        id: Construct id.
        name: What its name begins with.
        namespace: Where it is.
        component: What it belongs to.
        data: Content of each file.
    """
    content = "".join(f"{key}\0{value}\0" for key, value in sorted(data.items()))
    full = f"{name}-{sha256(content.encode()).hexdigest()[:_DIGITS]}"
    kube.KubeConfigMap(
        scope,
        id,
        metadata=kube.ObjectMeta(name=full, namespace=namespace, labels=labels_of(component)),
        data=dict(data),
        immutable=True,
    )
    return full


def named_by_template(manifest: JsonObject) -> JsonObject:
    """Return an object, a Job under its name and a digest of its pod template.

    A Job's template is immutable, so another template must make another Job. Charts call theirs by
    plain names, as what follows may change the template: the cache of images names its images.
    """
    if (text(manifest, "apiVersion"), text(manifest, "kind")) != ("batch/v1", "Job"):
        return manifest
    named = job_name(text(manifest, "metadata", "name"), mapping(manifest, "spec", "template"))
    return {**manifest, "metadata": {**mapping(manifest, "metadata"), "name": named}}


def job_name(name: str, template: JsonObject) -> str:
    """Return ``name`` with a digest of ``template``, the pod template as the manifest has it."""
    digest = sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()[:8]
    return f"{name}-{digest}"
