"""The kind `ray` of jobs, and `scheduling.ray`: their keys, and the rules of the file."""

from collections.abc import Iterable
from typing import Annotated, Literal

from ultrascale import config
from ultrascale.config._values import matching
from ultrascale.documents import mapping
from ultrascale.parts.ray import facts

RayVersion = Annotated[
    str, matching(r"\d{1,3}\.\d{1,3}\.\d{1,3}", "not a release of Ray", "write it as 2.60.0")
]
# Keys of training jobs that Ray leaves without effect, with the way out.
_OF_TORCHRUN = {
    "script": "name the entry point as command",
    "processes_per_node": "leave it out: the entry point asks Ray for processes",
    "rendezvous": "leave it out: its pods meet at the head",
    "compile_cache": "leave it out",
    "ttl_seconds_after_finished": "leave it out: `ultrascale cancel` takes an ended job away",
}
# Fields of a RayJob that decide who reaches the dashboard, or which cluster runs the entry point.
_SPEC, _HEAD = ("RayJob", "spec"), ("RayJob", "spec", "rayClusterSpec", "headGroupSpec")
_CLOSED = (
    *((*_SPEC, key) for key in ("submissionMode", "clusterSelector")),
    (*_SPEC, "rayClusterSpec", "authOptions"),
    *((*_HEAD, key) for key in ("rayStartParams", "serviceType", "headService", "enableIngress")),
)


class RayJob(config.TrainingJob):
    """One job of Ray: a head and groups of workers, made for it and gone with it."""

    has_own_controller = True

    kind: Literal["ray"] = "ray"  # pyright: ignore[reportIncompatibleVariableOverride] its own value
    """A job of Ray."""

    ray_version: RayVersion
    """Release of Ray in its image, 2.52.0 or newer."""


class FileKeys(config.Section):
    """The key of `scheduling` for Ray's operator."""

    ray: bool = False
    """Install KubeRay's operator without a job of kind `ray` in the file, for jobs to come."""


def runs_ray(keys: FileKeys | None, jobs: Iterable[object]) -> bool:
    """Return whether a file needs the operator."""
    return (keys is not None and keys.ray) or any(isinstance(job, RayJob) for job in jobs)


@config.rule
def ray_has_one_head(job: RayJob) -> config.Mistakes:
    head = job.roles.get(facts.HEAD)
    if head is None:
        wrong = "no role is called head, whose pod runs the entry point"
        yield config.refuse("roles", wrong, "add head: {pool: POOL, nodes: 1}", got="")
    elif head.nodes != 1:
        yield config.refuse("roles.head.nodes", "Ray has one head", "write 1, and add workers")
    if facts.HEAD_GROUP in job.roles:
        wrong = "the name that KubeRay gives the head's group"
        yield config.refuse(f"roles.{facts.HEAD_GROUP}", wrong, "call it workers", got="")


@config.rule
def ray_has_one_program(job: RayJob) -> config.Mistakes:
    for key in sorted(_OF_TORCHRUN.keys() & job.model_fields_set):
        yield config.refuse(key, "not a key of jobs of Ray", _OF_TORCHRUN[key], got="")
    for key in sorted(job.restarts.model_fields_set & {"workers", "budget", "stragglers"}):
        wrong = "KubeRay starts the whole job anew, and nothing less"
        yield config.refuse(f"restarts.{key}", wrong, "leave it out")
    for name, role in job.roles.items():
        for key in sorted(role.model_fields_set & {"script", "command", "args"}):
            wrong = "every pod runs Ray itself, and the entry point is the job's"
            yield config.refuse(f"roles.{name}.{key}", wrong, f"state {key} of the job", got="")
        if role.when_lost == "restart-role":
            wrong = "KubeRay makes each lost worker anew, and the entry point goes on or fails"
            yield config.refuse(f"roles.{name}.when_lost", wrong, "leave it out")


@config.rule
def ray_has_tokens(job: RayJob) -> config.Mistakes:
    if tuple(map(int, job.ray_version.split("."))) < facts.LEAST_RAY:
        wrong = "a release without tokens, in which whoever reaches its port runs code"
        yield config.refuse("ray_version", wrong, "use an image with Ray 2.52.0 or newer")


@config.rule
def ray_stays_closed(job: RayJob) -> config.Mistakes:
    for path in _CLOSED:
        # Null takes a field away, and the token with it.
        if path[-1] in mapping(job.patch, *path[:-1]):
            wrong = "decides where the entry point runs, or who may run code beside it"
            todo = "leave it out; `kubectl port-forward` shows the dashboard"
            yield config.Mistake(("patch", *path), wrong, todo, got="")
