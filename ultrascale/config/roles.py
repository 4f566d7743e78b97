"""Roles of a training job: each as a job of its own, and the rules of all of them together."""

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from ultrascale.config._errors import Mistake, Mistakes, near, refuse
from ultrascale.config._parts import Names, Readable
from ultrascale.config._rules import rule
from ultrascale.config.images import Images
from ultrascale.config.job_rules import (
    job_fits_its_nodes,
    job_has_the_nodes,
    job_image_is_known,
    neuron_devices_are_neighbours,
    processes_share_the_devices,
    spot_notice_is_long_enough,
    training_keeps_off_controllers,
    variables_do_no_harm,
)
from ultrascale.config.jobs import RoleSpec, TrainingJob
from ultrascale.config.pools import Pool
from ultrascale.config.scheduling import Scheduling
from ultrascale.config.teams import Teams

ROLE_VARIABLE, ROLE_INDEX_VARIABLE = "ROLE", "ROLE_INDEX"
"""Variables of each pod of a job with roles: the name of its role, and its number there."""

_PROGRAM = ("script", "command", "args")
# Keys that a role may state; the job's own holds for jobs without roles.
_KEYS = tuple(key for key in RoleSpec.model_fields if key not in ("nodes", "when_lost"))
_JudgedOnPools = Callable[[TrainingJob, Readable[Pool]], Mistakes]
_ON_POOLS: tuple[_JudgedOnPools, ...] = (
    job_fits_its_nodes,
    neuron_devices_are_neighbours,
    job_has_the_nodes,
    processes_share_the_devices,
    training_keeps_off_controllers,
    spot_notice_is_long_enough,
)


def hosts_variable(role: str) -> str:
    """Return the variable with the host names of a role's pods, in each pod of the job."""
    return f"{role.upper()}_HOSTS"


def role_as_job(job: TrainingJob, name: str) -> TrainingJob:
    """Return a role of a job as a job without roles; keys that it leaves out are the job's."""
    role = job.roles[name]
    keys: dict[str, object] = {key: getattr(role, key) for key in _stated_keys(role)}
    keys |= {"roles": {}, "role": name, "nodes": role.nodes, "env": {**job.env, **role.env}}
    if "script" in keys or "command" in keys:
        # A program has its own arguments, and torchrun starts none beside another.
        keys |= {key: getattr(role, key) for key in _PROGRAM}
    if role.command:
        keys["processes_per_node"] = None
    if role.nodes == 1:
        keys["topology"] = None
    return job.model_copy(update=keys)


def in_role(job: TrainingJob, name: str, mistake: Mistake) -> Mistake:
    """Return a mistake of `role_as_job` at the role's or the job's key, with the value."""
    key, *rest = mistake.at or ("",)
    role = job.roles[name]
    if key == "env":
        in_the_role = not rest or rest[0] in role.env
    else:
        in_the_role = key in {"nodes", *_stated_keys(role)} or (
            key in _KEYS and key not in job.model_fields_set
        )
    return replace(mistake, at=("roles", name, *mistake.at)) if in_the_role else mistake


def _stated_keys(role: RoleSpec) -> Iterator[str]:
    """Yield the keys that a role states; `null` leaves a key out."""
    own = role.model_fields_set - {"env"}
    return (key for key in _KEYS if key in own and getattr(role, key) is not None)


@rule
def roles_have_an_engine(
    job: TrainingJob, scheduling: Scheduling, governance: Teams | None
) -> Mistakes:
    if not job.roles or scheduling.engine != "none" or job.has_own_controller:
        return
    if governance is not None:
        wrong = "several roles on HyperPod, whose operators start pods of one kind"
        todo = "send a job for each role, or use a cluster with scheduling.queueing: kueue"
    else:
        wrong = "several roles need a queueing engine, which starts their pods together"
        todo = "set scheduling.queueing: kueue, or volcano"
    yield refuse("roles", wrong, todo, got="")


@rule
def roles_stand_for_the_job(job: TrainingJob) -> Mistakes:
    """Yield keys of a job that only its roles can state, or that several roles cannot have."""
    if not job.roles:
        return
    if "nodes" in job.model_fields_set:
        yield refuse("nodes", "each role has nodes of its own", "leave it out")
    if "role" in job.model_fields_set:
        yield refuse("role", "roles names every role", "leave it out")
    if job.min_nodes is not None:
        wrong = "nothing says which role may miss nodes"
        yield refuse("min_nodes", wrong, "write when_lost: restart-role in roles that may")
    if job.prefer:
        wrong = "each role has its own pool, so prefer chooses nothing"
        yield refuse("prefer", wrong, "write pool in each role")
    if job.compile_cache is not None:
        wrong = "no run with --precompile compiles graphs of several roles"
        yield refuse("compile_cache", wrong, "leave it out", got="")
    if job.preflight:
        todo = "leave it out, and check their pools by `ultrascale fabric FILE POOL`"
        yield refuse(
            "preflight",
            "a check before the job knows one role alone, and the job has several",
            todo,
        )


@rule
def role_has_one_program(job: TrainingJob) -> Mistakes:
    for name, role in job.roles.items():
        if role.script is not None and role.command:
            wrong = "script and command both name the program"
            yield refuse(f"roles.{name}.command", wrong, "keep script or command")


@rule
def role_pool_exists(role: RoleSpec, names: Names[Pool]) -> Mistakes:
    if role.pool is not None and role.pool not in names:
        yield refuse("pool", "not one of pools", near(role.pool, names))


@rule
def role_has_one_way_to_nodes(role: RoleSpec, job: TrainingJob) -> Mistakes:
    if role.pool is not None and "node-type" in job.node_selector:
        wrong = "node_selector of the job already chooses a pool for all roles"
        yield refuse("pool", wrong, "keep pool here, or node-type there")


@rule
def role_fits_its_pool(job: TrainingJob, pools: Readable[Pool]) -> Mistakes:
    def judged(part: TrainingJob) -> Mistakes:
        for judge in _ON_POOLS:
            yield from judge(part, pools)

    yield from role_mistakes(job, judged)


@rule
def role_image_is_known(job: TrainingJob, images: Images) -> Mistakes:
    yield from role_mistakes(job, lambda part: job_image_is_known(part, images))


@rule
def variables_of_roles_do_no_harm(job: TrainingJob) -> Mistakes:
    yield from role_mistakes(job, variables_do_no_harm)


@rule
def hosts_of_roles_are_told(job: TrainingJob) -> Mistakes:
    """Yield variables that would hide the variables of the job's roles in a pod."""
    if not job.roles:
        return
    of_roles = {ROLE_VARIABLE, ROLE_INDEX_VARIABLE, *map(hosts_variable, job.roles)}
    places = {("env",): job.env, ("secrets",): job.secrets}
    places |= {("roles", name, "env"): role.env for name, role in job.roles.items()}
    for place, env in places.items():
        for name in of_roles & env.keys():
            wrong = "set for every pod of a job with roles"
            yield Mistake((*place, name), wrong, "choose another name")


def role_mistakes(job: TrainingJob, judge: Callable[[TrainingJob], Mistakes]) -> Iterator[Mistake]:
    """Yield the mistakes of roles, once, without those that the job itself has."""
    mistakes = (
        in_role(job, name, mistake)
        for name in job.roles
        for mistake in judge(role_as_job(job, name))
    )
    known = {*judge(job)} if job.roles else set[Mistake]()
    for mistake in mistakes:
        if mistake not in known:
            known.add(mistake)
            yield mistake
