"""A rendered job with markers where the chart `training-job` puts what its values say.

A marker in quotes stands for any JSON, one within a text for a text.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from ultrascale import config
from ultrascale.jobs.render import render
from ultrascale.plan import jobs as plan_jobs
from ultrascale.plan import names
from ultrascale.plan.job_request import JobRequest

NAME = "${NAME}"
# Numbers that no job has, until markers take their places.
_RESTARTS, _TTL = 7_654_321, 87_654_321
_NUMBERS: Mapping[object, str] = {
    _RESTARTS: "${RESTARTS_NUMBER}",
    # Volcano counts the first run as well.
    _RESTARTS + 1: "${RUNS_NUMBER}",
    str(_RESTARTS): "${RESTARTS}",
    _TTL: "${TTL_NUMBER}",
}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def skeleton(request: JobRequest) -> dict[str, object]:
    """Return the objects of a job with markers, and the tolerations that it has in any case."""
    job = request.job.model_copy(
        update={
            "image": "${IMAGE}",
            "priority": "${PRIORITY}",
            "restarts": config.Restarts(job=_RESTARTS),
            "ttl_seconds_after_finished": _TTL,
            "volumes": (),
        }
    )
    manifests = render(plan_jobs.plan_job(replace(request, job=job, account=None)))
    tolerations: list[object] = []
    objects = [_marked(each, tolerations) for each in manifests.objects]
    return {"tolerations": tolerations, "objects": objects}


def _marked(value: object, tolerations: list[object]) -> object:
    """Return a part of a rendered job with markers where values of the chart come."""
    if isinstance(value, Mapping):
        found = cast("Mapping[str, Any]", value)
        if "containers" in found:
            found = _marked_pod(found, tolerations)
        return {key: _marked(each, tolerations) for key, each in found.items()}
    if isinstance(value, list):
        return [_marked(each, tolerations) for each in cast("list[object]", value)]
    return _NUMBERS.get(value, value)


def _marked_pod(spec: Mapping[str, Any], tolerations: list[object]) -> Mapping[str, Any]:
    tolerations += spec.get("tolerations", [])
    (container,) = spec["containers"]
    memory = [
        {**each, "emptyDir": {**each["emptyDir"], "sizeLimit": "${SHARED_MEMORY}"}}
        for each in spec["volumes"]
    ]
    fields = [each for each in container["env"] if "valueFrom" in each]
    return {
        **spec,
        "affinity": _marked_affinity(spec["affinity"]),
        "tolerations": "${TOLERATIONS}",
        "volumes": ["${VOLUMES}", *memory],
        "containers": [
            {
                **container,
                "command": "${COMMAND}",
                "env": ["${ENVIRONMENT}", *fields],
                "resources": {"requests": "${REQUESTS}", "limits": "${LIMITS}"},
                "volumeMounts": ["${MOUNTS}", *container["volumeMounts"]],
            }
        ],
    }


def _marked_affinity(affinity: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the affinity with a marker for the labels that a job's nodes must have."""
    nodes = affinity["nodeAffinity"]
    (term,) = nodes[_REQUIRED]["nodeSelectorTerms"]
    rules = [
        "${LABELS}" if rule["key"] == names.NODE_TYPE_LABEL else rule
        for rule in term["matchExpressions"]
    ]
    return {
        "nodeAffinity": {**nodes, _REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": rules}]}}
    }
