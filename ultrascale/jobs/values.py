"""Values of the chart `training-job`, as a job of the cluster that it is to run in.

What in them could never work there is put right where their meaning is plain, and said; what is
not plain is refused.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from ultrascale import config
from ultrascale.catalog import runtime_environment
from ultrascale.jobs import values_nodes, values_resources
from ultrascale.jobs.values_pieces import TEMPLATES, Piece, joined
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.model import ClusterPlan

DATA_PATH, CHECKPOINT_PATH = "/data", "/checkpoints"
MODEL_TYPE = "MODEL_TYPE"


def translate(
    values: Path | Mapping[str, object], template: str, plan: ClusterPlan
) -> config.TranslatedJob:
    """Return the job that values of the chart describe.

    Args:
        values: A file of values, or the values; they are laid over the chart's own.
        template: The one of their `jobTemplates` that it is.
        plan: The cluster that it is to run in.

    Raises:
        ConfigError: The file cannot be read, or there is no such template.
    """
    reading = config.read_job_values(values, template)
    chosen = reading.template
    if chosen is None:
        raise reading.refusal(*_unknown(reading, template))
    name = reading.values.name or template
    piece = joined(
        Piece(
            keys={"name": name, "kind": "training"},
            places={
                ("name",): ("name",) if reading.values.name else (TEMPLATES, template),
                **{(key,): (TEMPLATES, template) for key in ("kind", "team", "namespace", "nodes")},
            },
        ),
        _program(reading.values),
        _environment(reading),
        _volumes(reading.values),
        values_nodes.placement(reading, template, chosen, plan),
        values_resources.resources(template, chosen),
        _priority(reading, template, chosen, plan),
    )
    return config.TranslatedJob(
        keys=piece.keys,
        template=template,
        document=reading.document,
        places=piece.places,
        mistakes=(*reading.mistakes, *piece.mistakes),
        unread=frozenset(_unread(reading, template)),
        notes=tuple(_in_order(reading.document, piece)),
    )


def mistakes_of(request: JobRequest) -> Iterator[config.Mistake]:
    """Yield claims of values that are not in the namespace of their job."""
    here = sorted(claim.name for claim in request.claims if claim.namespace == request.namespace)
    for number, volume in enumerate(request.job.volumes or ()):
        if volume.claim not in here:
            wrong = f"no claim that the cluster file makes in namespace {request.namespace}"
            todo = config.near(volume.claim, here)
            yield config.refuse(f"volumes.{number}.claim", wrong, todo)


def _unknown(reading: config.JobValuesReading, template: str) -> Iterator[config.Mistake]:
    if template not in reading.names:
        wrong, todo = f"no template {template!r}", config.near(template, reading.names)
        yield config.Mistake((TEMPLATES,), wrong, todo, got="")


def _unread(reading: config.JobValuesReading, template: str) -> Iterator[str]:
    """Yield the keys of the job that rest on values that could not be read."""
    places = {
        "resources": (TEMPLATES, template, "resources"),
        "priority": (TEMPLATES, template, "priorityClassName"),
        "tolerations": (TEMPLATES, template, "tolerations"),
        "node_selector": (TEMPLATES, template, "nodeSelector"),
        "prefer": ("nodeSelectors",),
    }
    yield from (key for key, at in places.items() if not reading.is_sound(*at))


def _program(values: config.JobValues) -> Piece:
    image = {"image": values.image} if values.image else {}
    return Piece(
        keys={
            **image,
            "command": [*values.command],
            "args": [*values.args],
            "restarts": {"job": values.backoff_limit},
            "ttl_seconds_after_finished": values.ttl_seconds_after_finished,
        },
        places={
            ("script",): ("command",),
            ("restarts", "job"): ("backoffLimit",),
            ("ttl_seconds_after_finished",): ("ttlSecondsAfterFinished",),
        },
    )


def _environment(reading: config.JobValuesReading) -> Piece:
    values = reading.values
    hidden = {k: v for k, v in values.env.items() if runtime_environment.hides_devices(k, v)}
    env = {name: value for name, value in values.env.items() if name not in hidden}
    notes: dict[config.KeyPath, str] = {
        ("env", name): f"{value!r} is left out: CUDA sees no device by that word, and a container "
        "sees the GPUs that it asks for without it"
        for name, value in hidden.items()
        if reading.states("env", name)
    }
    if values.model_type:
        env.setdefault(MODEL_TYPE, values.model_type)
    places: dict[config.KeyPath, config.KeyPath] = {}
    if MODEL_TYPE not in values.env:
        places["env", MODEL_TYPE] = ("modelType",)
    # Helm knows no order of keys either.
    return Piece(keys={"env": dict(sorted(env.items()))}, places=places, notes=notes)


def _volumes(values: config.JobValues) -> Piece:
    claims = {
        "dataPvcName": (values.data_pvc_name, DATA_PATH),
        "checkpointPvcName": (values.checkpoint_pvc_name, CHECKPOINT_PATH),
    }
    found = {key: (claim, path) for key, (claim, path) in claims.items() if claim}
    return Piece(
        keys={
            # Whether they exist is judged once it is known in which namespace.
            "volumes": [
                {"claim": claim, "mount_path": path, "existing": True}
                for claim, path in found.values()
            ]
        },
        places={("volumes", number, "claim"): (key,) for number, key in enumerate(found)},
    )


def _priority(
    reading: config.JobValuesReading, template: str, chosen: config.JobTemplate, plan: ClusterPlan
) -> Piece:
    known = {each.name: each for each in plan.priority_classes}
    notes: dict[config.KeyPath, str] = {}
    for name, stated in reading.values.priority_classes.items():
        at = ("priorityClasses", name)
        if not reading.states(*at):
            continue
        found = known.get(name)
        if found is None:
            notes[at] = "is not made: the classes of the cluster file are"
            continue
        if stated.value != found.value:
            notes[(*at, "value")] = f"{stated.value} does not count: the cluster's is {found.value}"
        if stated.preemption_policy is not None:
            preempts = stated.preemption_policy != "Never"
            if preempts != found.preempts:
                does = "displace those of lower priority" if found.preempts else "displace none"
                notes[(*at, "preemptionPolicy")] = (
                    f"{stated.preemption_policy} does not count: pods of the cluster's class {does}"
                )
    return Piece(
        keys={"priority": chosen.priority_class_name},
        places={("priority",): (TEMPLATES, template, "priorityClassName")},
        notes=notes,
    )


def _in_order(document: config.Document, piece: Piece) -> Iterator[str]:
    for at in sorted(piece.notes, key=document.place):
        yield f"{'.'.join(str(key) for key in at)}: {piece.notes[at]}."
