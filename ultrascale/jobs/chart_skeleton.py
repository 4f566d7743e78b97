"""A rendered job with markers where the chart `training-job` puts what its values say.

A marker in quotes stands for any JSON, one within a text for a text.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from ultrascale import config
from ultrascale.documents import Json, JsonObject, mapping, objects
from ultrascale.jobs.render import render
from ultrascale.plan import names
from ultrascale.plan.jobs import job as plan_jobs
from ultrascale.plan.jobs.request import JobRequest

NAME = "${NAME}"
# Numbers that no job has, until markers take their places.
_RESTARTS, _TTL = 7_654_321, 87_654_321
_NUMBERS: Mapping[int | str, str] = {
    _RESTARTS: "${RESTARTS_NUMBER}",
    # Volcano counts the first run as well.
    _RESTARTS + 1: "${RUNS_NUMBER}",
    str(_RESTARTS): "${RESTARTS}",
    _TTL: "${TTL_NUMBER}",
}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def skeleton(request: JobRequest) -> list[Json]:
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


def _marked(value: Json, env: Collection[str]) -> Json:
    """Return a part of a rendered job with markers where values of the chart come."""
    if isinstance(value, Mapping):
        fields = _marked_pod(value, env) if "containers" in value else value
        return {key: _marked(item, env) for key, item in fields.items()}
    if isinstance(value, list):
        return [_marked(item, env) for item in value]
    return _NUMBERS.get(value, value) if isinstance(value, int | str) else value


def _marked_pod(spec: JsonObject, env: Collection[str]) -> JsonObject:
    (container,) = objects(spec, "containers")
    memory = [
        {**volume, "emptyDir": {**mapping(volume, "emptyDir"), "sizeLimit": "${SHARED_MEMORY}"}}
        for volume in objects(spec, "volumes")
    ]
    # Those of the plan are the libraries'; the others tell the pods of a job apart.
    others = [variable for variable in objects(container, "env") if variable["name"] not in env]
    return {
        **spec,
        "affinity": _marked_affinity(mapping(spec, "affinity")),
        "tolerations": "${TOLERATIONS}",
        "volumes": ["${VOLUMES}", *memory],
        "containers": [
            {
                **container,
                "command": "${COMMAND}",
                "env": ["${ENVIRONMENT}", *others],
                "resources": {"requests": "${REQUESTS}", "limits": "${LIMITS}"},
                "volumeMounts": ["${MOUNTS}", *objects(container, "volumeMounts")],
            }
        ],
    }


def _marked_affinity(affinity: JsonObject) -> JsonObject:
    """Return the affinity with a marker for the labels that a job's nodes must have."""
    nodes = mapping(affinity, "nodeAffinity")
    (term,) = objects(nodes, _REQUIRED, "nodeSelectorTerms")
    rules = [
        "${LABELS}" if rule["key"] == names.NODE_TYPE_LABEL else rule
        for rule in objects(term, "matchExpressions")
    ]
    return {
        "nodeAffinity": {**nodes, _REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": rules}]}}
    }
