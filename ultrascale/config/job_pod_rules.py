"""Rules of a job's additions to its pods and objects: secrets, scratch, annotations, patches."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import get_args

from ultrascale.catalog import kubernetes, object_keys, runtime_environment
from ultrascale.config._document import KeyPath, is_list, is_mapping
from ultrascale.config._errors import Mistake, Mistakes, refuse
from ultrascale.config._rules import rule
from ultrascale.config.jobs import Capability, Job, Security, TrainingJob
from ultrascale.config.services import ServiceJob


@rule
def secrets_do_no_harm(job: Job) -> Mistakes:
    for name in job.secrets:
        if (why := runtime_environment.why_no_secret(name)) is not None:
            yield Mistake(("secrets", name), why.wrong, why.todo)


@rule
def allowed_variables_need_it(job: Job) -> Mistakes:
    roles = job.roles.values() if isinstance(job, TrainingJob) else ()
    stated = dict(job.env) | {key: value for role in roles for key, value in role.env.items()}
    for number, name in enumerate(job.allow_env):
        at = ("allow_env", number)
        if not runtime_environment.is_allowable(name, stated.get(name, "")):
            wrong = "allow_env cannot permit this variable"
            yield Mistake(at, wrong, "leave it out here: env itself takes or refuses it")
        elif name not in stated:
            yield Mistake(at, "env does not set this variable", "set it there, or remove it here")


@rule
def capabilities_reach_the_program(security: Security) -> Mistakes:
    """Yield capabilities beside a user: Linux gives them to root's processes only."""
    if security.user is not None and security.capabilities:
        wrong = "Linux gives capabilities only to root, and user is not root"
        yield refuse("capabilities", wrong, "leave out user, or capabilities")


@rule
def group_has_a_user(security: Security) -> Mistakes:
    if security.group is not None and security.user is None:
        yield refuse("group", "a group without a user", "write user as well")


@rule
def variables_have_one_value(job: Job) -> Mistakes:
    for name in job.secrets:
        if name in job.env:
            yield Mistake(("secrets", name), "also a variable of env", "keep env or secrets")


@rule
def variables_of_roles_have_one_value(job: TrainingJob) -> Mistakes:
    for role, spec in job.roles.items():
        for name in spec.env:
            if name in job.secrets:
                wrong = "also a variable of the job's secrets"
                yield Mistake(("roles", role, "env", name), wrong, "keep env or secrets")


@rule
def scratch_has_a_path_of_its_own(job: Job) -> Mistakes:
    if any(job.scratch == volume.mount_path for volume in job.volumes or ()):
        yield refuse("scratch", "a volume is mounted at this path", "choose another")


@rule
def annotations_are_nobody_elses(job: Job) -> Mistakes:
    for key in job.annotations:
        if key in object_keys.KEEPS_AUTOSCALERS_OFF and not isinstance(job, ServiceJob):
            wrong = "every pod of a job has this annotation, so that no autoscaler removes its node"
            yield Mistake(("annotations", key), wrong, "leave it out")
        elif (owner := object_keys.owner_of(key)) is not None:
            wrong = f"an annotation that {owner.name} sets or reads for its own work"
            yield Mistake(("annotations", key), wrong, owner.instead)


@rule
def annotations_are_not_too_large(job: Job) -> Mistakes:
    size = sum(len(key.encode()) + len(value.encode()) for key, value in job.annotations.items())
    if size > kubernetes.ANNOTATION_BYTES:
        most = kubernetes.ANNOTATION_BYTES // 1024
        wrong = f"{size // 1024} KiB, more than the {most} KiB of annotations of an object"
        yield refuse("annotations", wrong, "put them into a file on a volume", got="")


@rule
def patch_keeps_what_a_job_is_found_by(job: Job) -> Mistakes:
    for kind, patch in job.patch.items():
        if kind not in object_keys.KINDS_OF_JOBS:
            known = ", ".join(object_keys.KINDS_OF_JOBS)
            yield Mistake(("patch", kind), "not an object of a job", f"write one of {known}")
            continue
        for at in _name_and_kind_places(patch):
            wrong = "commands find the job's objects by this field"
            yield Mistake(("patch", kind, *at), wrong, "leave it out of the patch", got="")


# Values by their keys that the level `baseline` of our namespaces refuses in a pod; None: any.
# Source: https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
_REFUSED_IN_PODS: Mapping[str, object] = MappingProxyType(
    {
        "hostIPC": True,
        "hostNetwork": True,
        "hostPID": True,
        "hostPath": None,
        "hostPort": None,
        "hostProcess": True,
        "privileged": True,
        "procMount": "Unmasked",
    }
)
_PROFILES = ("seccompProfile", "appArmorProfile")
_APPARMOR = "container.apparmor.security.beta.kubernetes.io/"


@rule
def pods_stay_at_the_level_of_their_namespace(job: Job) -> Mistakes:
    """Yield what a patch or annotation adds that the API server refuses: no pod would start."""
    places = [*_refused_places(job.patch, ("patch",))]
    places += [
        ("annotations", key)
        for key, value in job.annotations.items()
        if key.startswith(_APPARMOR) and value == "unconfined"
    ]
    for at in places:
        wrong = "the level baseline of the job's namespace refuses pods with this"
        todo = "leave it out, and run such pods in a namespace of your own"
        yield Mistake(at, wrong, todo)


def _refused_places(value: object, at: KeyPath) -> Iterator[KeyPath]:
    if is_list(value):
        for number, item in enumerate(value):
            yield from _refused_places(item, (*at, number))
    if not is_mapping(value):
        return
    for key, item in value.items():
        place = (*at, key)
        refused = _REFUSED_IN_PODS.get(key, item)
        if item and key in _REFUSED_IN_PODS and refused in (None, item):
            yield place
        elif key in _PROFILES and is_mapping(item) and item.get("type") == "Unconfined":
            yield (*place, "type")
        elif key == "capabilities" and is_mapping(item) and is_list(added := item.get("add")):
            known = get_args(Capability)
            yield from ((*place, "add", n) for n, name in enumerate(added) if name not in known)
        else:
            yield from _refused_places(item, place)


def _name_and_kind_places(patch: Mapping[str, object]) -> Iterator[KeyPath]:
    yield from ((key,) for key in ("apiVersion", "kind") if key in patch)
    metadata = patch.get("metadata", {})
    if not is_mapping(metadata):
        yield ("metadata",)
    else:
        yield from (("metadata", key) for key in ("name", "namespace") if key in metadata)
