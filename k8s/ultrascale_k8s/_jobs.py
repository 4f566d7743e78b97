"""Jobs of the platform, which are applied again and again."""

import hashlib
import json
from collections.abc import Mapping
from typing import cast

import cdk8s
from cdk8s_plus_27 import k8s as kube


def name_by_template(job: kube.KubeJob, name: str) -> None:
    """Call ``job`` by ``name`` and a digest of its pod template.

    A Job's template is immutable, so another template must make another Job.
    """
    manifest = cast("Mapping[str, Mapping[str, Mapping[str, object]]]", job.to_json())
    full = job_name(name, manifest["spec"]["template"])
    job.add_json_patch(cdk8s.JsonPatch.replace("/metadata/name", full))


def job_name(name: str, template: Mapping[str, object]) -> str:
    """Return ``name`` with a digest of ``template``, the pod template as the manifest has it."""
    digest = hashlib.sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()[:8]
    return f"{name}-{digest}"
