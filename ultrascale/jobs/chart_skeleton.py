"""A rendered job with markers where the chart `training-job` puts what its values say.

A marker in quotes stands for any JSON, one within a text for a text.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, cast

from ultrascale import config
from ultrascale.jobs.render import render
from ultrascale.plan import names
from ultrascale.plan.jobs import job as plan_jobs
from ultrascale.plan.jobs.request import JobRequest

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


def skeleton(request: JobRequest) -> list[object]:
    """Return the objects of a job with markers."""
    job = request.job.model_copy(
        update={
            "image": "${IMAGE}",
            "priority": "${PRIORITY}",
            "restarts": config.Restarts(job=_RESTARTS),
            "ttl_seconds_after_finished": _TTL,
            "volumes": (),
        }
    )
    plan = plan_jobs.plan_job(replace(request, job=job, account=None))
    return [_marked(each, plan.pod.env) for each in render(plan).objects]


def _marked(value: object, env: Collection[str]) -> object:
    """Return a part of a rendered job with markers where values of the chart come."""
    if isinstance(value, Mapping):
        found = cast("Mapping[str, Any]", value)
        if "containers" in found:
            found = _marked_pod(found, env)
        return {key: _marked(each, env) for key, each in found.items()}
    if isinstance(value, list):
        return [_marked(each, env) for each in cast("list[object]", value)]
    return _NUMBERS.get(value, value)


def _marked_pod(spec: Mapping[str, Any], env: Collection[str]) -> Mapping[str, Any]:
    (container,) = spec["containers"]
    memory = [
        {**each, "emptyDir": {**each["emptyDir"], "sizeLimit": "${SHARED_MEMORY}"}}
        for each in spec["volumes"]
    ]
    # Those of the plan are the libraries'; the others tell the pods of a job apart.
    others = [each for each in container["env"] if each["name"] not in env]
    return {
        **spec,
        "affinity": _marked_affinity(spec["affinity"]),
        "tolerations": "${TOLERATIONS}",
        "volumes": ["${VOLUMES}", *memory],
        "containers": [
            {
                **container,
                "command": "${COMMAND}",
                "env": ["${ENVIRONMENT}", *others],
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
