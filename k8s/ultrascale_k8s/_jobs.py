"""Jobs of the platform, which are applied again and again."""

import hashlib
import json

import cdk8s
from cdk8s_plus_27 import k8s as kube

from ultrascale.documents import JsonObject, mapping


def name_by_template(job: kube.KubeJob, name: str) -> None:
    """Call ``job`` by ``name`` and a digest of its pod template.

    A Job's template is immutable, so another template must make another Job.
    """
    full = job_name(name, mapping(job.to_json(), "spec", "template"))
    job.add_json_patch(cdk8s.JsonPatch.replace("/metadata/name", full))


def job_name(name: str, template: JsonObject) -> str:
    """Return ``name`` with a digest of ``template``, the pod template as the manifest has it."""
    digest = hashlib.sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()[:8]
    return f"{name}-{digest}"
