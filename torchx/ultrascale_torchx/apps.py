"""Translation of a TorchX app into a job: a role becomes a job, and its replicas nodes."""

from collections.abc import Iterator, Mapping, Sequence

from torchx.specs import AppDef, RetryPolicy, Role, VolumeMount, macros

from ultrascale import config
from ultrascale.catalog import eks, kubernetes
from ultrascale.core.engine import engine_of
from ultrascale.documents import Json, JsonObject
from ultrascale.frozen import Frozen
from ultrascale.plan import names
from ultrascale.plan.jobs.command import FIRST_INDEX, RANK_ZERO_HOST
from ultrascale_torchx.components import METADATA
from ultrascale_torchx.errors import AppError
from ultrascale_torchx.options import Options, repository

# Random values: the runner makes new ones in each process, so two renderings would differ.
_SESSION = "TORCHX_INTERNAL_SESSION_ID"
_INDEX = kubernetes.COMPLETION_INDEX
# Name of Neuron devices in old named resources.
_OLD_NEURON = "aws.amazon.com/neurondevice"
_DEVICES: Mapping[str, str] = {
    names.NEURON_DEVICE: "neuron",
    names.NVIDIA_GPU: "gpu",
    names.EFA_INTERFACE: "efa",
}

Mistakes = Iterator[str]
Keys = dict[str, Json]


class Described(Frozen):
    """An app, described by the keys of a job."""

    job: JsonObject  # The job
    precompile: bool  # Whether it only compiles its graphs


def describe(app: AppDef, options: Options, cluster: config.Cluster) -> Described:
    """Return ``app`` as a job of ``cluster``.

    Raises:
        AppError: A job cannot provide something that the app states; one line for each reason.
    """
    if len(app.roles) != 1:
        roles = ", ".join(role.name for role in app.roles)
        raise AppError([f"roles: a job has one, got {roles}; launch an app for each"])
    [stated] = app.roles
    pools = _Pools(cluster, options)
    mistakes = [*pools.mistakes(stated), *_mistakes(stated)]
    described = stated.metadata.get(METADATA)
    if described is None:
        mistakes += [*_foreign_mistakes(stated), *pools.unnamed(stated)]
    if mistakes:
        raise AppError(mistakes)
    role = _with_macros(stated, app.name)
    keys: Keys = {
        "name": app.name,
        "namespace": options.namespace,
        "image": _image(role.image, options),
        "env": {key: value for key, value in role.env.items() if key != _SESSION},
        **pools.keys(role),
        **({"queue": options.queue} if options.queue else {}),
        **({"allow_env": [*options.allow_env]} if options.allow_env else {}),
        **({"priority": options.priority_class} if options.priority_class else {}),
    }
    # Batch jobs, such as apps of one pod, need no place for output.
    without_place: Keys = {} if options.durable else {"durable": False}
    if role.mounts:
        keys["volumes"] = [*_volumes(role, options, cluster)]
    if described is not None:
        # Unchanged: these arguments are no templates of TorchX.
        job = {**keys, **without_place, **described["job"]}
        return Described(job=job, precompile=described["precompile"])
    foreign = _keys_of_foreign_app(role)
    if "kind" not in foreign:
        keys |= without_place
    return Described(job={**keys, **foreign}, precompile=False)


class _Pools:
    """Pools of the cluster file, with the choice of a pool for a role."""

    def __init__(self, cluster: config.Cluster, options: Options) -> None:
        self._pools = cluster.pools
        self._options = options
        # A queue of Kueue has its own order of pools.
        self._queued = engine_of(cluster.scheduling).quotas

    def mistakes(self, role: Role) -> Mistakes:
        wanted = _instance_type(role)
        if self._options.pool is not None or wanted is None or len(self._names_with(wanted)) == 1:
            return
        if pools := self._names_with(wanted):
            if self._queued:
                return
            yield f"pool: several have {wanted}; add -cfg pool=NAME, one of {_alternatives(pools)}"
            return
        types = sorted({name for pool in self._pools for name in pool.instance_types})
        where, todo = self._options.cluster, f"use one of {_alternatives(types)}"
        yield f"instance type: of no pool of {where}, got {wanted!r}; {todo}"

    def unnamed(self, role: Role) -> Mistakes:
        """Yield a mistake for a role that names neither pool, instance type nor accelerator."""
        if self._options.pool or _instance_type(role) or _devices(role):
            return
        todo = _alternatives(pool.name for pool in self._pools)
        yield f"pool: missing, and the app asks for no accelerator; add -cfg pool=NAME, of {todo}"

    def keys(self, role: Role) -> Keys:
        """Return the keys by which a job description chooses the role's nodes."""
        wanted = _instance_type(role)
        if self._options.pool is not None:
            return {"pool": self._options.pool}
        if wanted is None:
            return {}
        names_of_pools = self._names_with(wanted)
        if self._queued and len(names_of_pools) > 1:
            return {"node_selector": {eks.INSTANCE_TYPE_LABEL: wanted}}
        [name] = names_of_pools
        [pool] = [pool for pool in self._pools if pool.name == name]
        if len(pool.instance_types) == 1:
            return {"pool": name}
        return {"pool": name, "node_selector": {eks.INSTANCE_TYPE_LABEL: wanted}}

    def _names_with(self, instance_type: str) -> list[str]:
        return [pool.name for pool in self._pools if instance_type in pool.instance_types]


def _mistakes(role: Role) -> Mistakes:
    for mount in role.mounts:
        if not isinstance(mount, VolumeMount):
            wrong = "a job mounts claims alone: other mounts tie its pods to their node"
            yield f"mounts: {wrong}, got {mount!r}; use type=volume,src=CLAIM,dst=PATH"


def _foreign_mistakes(role: Role) -> Mistakes:
    restarts_alone = role.retry_policy == RetryPolicy.REPLICA and role.num_replicas > 1
    if restarts_alone and role.min_replicas is None:
        wrong = "pods of a job restart together, unless it goes on with fewer"
        yield f"retry_policy: {wrong}, got REPLICA; use APPLICATION, or set min_replicas"
    for name in role.resource.devices:
        if name == _OLD_NEURON:
            todo = f"use {names.NEURON_DEVICE}, or a resource named eks_TYPE"
            yield f"devices: a name that Neuron's plugin no longer has, got {name!r}; {todo}"
        elif name not in _DEVICES:
            yield f"devices: not one of {_alternatives(_DEVICES)}, got {name!r}; leave it out"
    if role.num_replicas > 1:
        for name, value in role.env.items():
            if macros.replica_id in value:
                wrong = "the index of a pod, which only its command can have"
                yield f"env.{name}: {wrong}, got {value!r}; use it in args"


def _with_macros(role: Role, name: str) -> Role:
    values = macros.Values(
        img_root="",
        app_id=name,
        replica_id=REPLICA_ID if role.num_replicas > 1 else "0",
        rank0_env=RANK_ZERO_HOST,
    )
    return values.apply(role)


def _image(image: str, options: Options) -> str:
    return f"{repository(options.image_repo)}{image}" if image.startswith(":") else image


def _volumes(role: Role, options: Options, cluster: config.Cluster) -> Iterator[Keys]:
    made = {
        lustre.claim.name
        for lustre in cluster.storage.lustre
        if lustre.claim is not None and lustre.claim.namespace == options.namespace
    }
    for mount in role.mounts:
        if isinstance(mount, VolumeMount):
            yield {
                "claim": mount.src,
                "mount_path": mount.dst_path,
                "read_only": mount.read_only,
                "existing": mount.src not in made,
            }


def _keys_of_foreign_app(role: Role) -> Keys:
    """Return the keys of a job description for an app that this package did not make."""
    command = [role.entrypoint, *role.args]
    if role.num_replicas == 1 and not _devices(role):
        alone = {"resources": _resources(role), "retries": role.max_retries}
        return {"kind": "batch", "command": command, **alone}
    keys: Keys = {
        "nodes": role.num_replicas,
        "role": role.name,
        "resources": _resources(role),
        "restarts": {"job": role.max_retries},
    }
    if role.min_replicas is not None and role.min_replicas < role.num_replicas:
        keys["min_nodes"] = role.min_replicas
    if role.num_replicas > 1:
        command = with_index(command, port=role.port_map.get("c10d"))
    return {**keys, "command": command}


def _resources(role: Role) -> Keys:
    """Return the resource requests of a role; an amount of 0 or less requests nothing."""
    devices = _devices(role)
    # An accelerated node accepts a pod that uses none of its devices.
    amounts: Keys = dict(devices) if {"gpu", "neuron"} & set(devices) else {**devices, "neuron": 0}
    if role.resource.cpu > 0:
        amounts["cpu"] = str(role.resource.cpu)
    if role.resource.memMB > 0:
        amounts["memory"] = f"{role.resource.memMB}M"
    return amounts


def _devices(role: Role) -> dict[str, int]:
    devices = {_DEVICES[name]: n for name, n in role.resource.devices.items() if name in _DEVICES}
    return {**devices, "gpu": role.resource.gpu} if role.resource.gpu > 0 else devices


def _instance_type(role: Role) -> str | None:
    instance_type = role.resource.capabilities.get(eks.INSTANCE_TYPE_LABEL)
    return None if instance_type is None else str(instance_type)


def _alternatives(words: Sequence[str] | Iterator[str] | Mapping[str, str]) -> str:
    return ", ".join(words)


# TorchX would write a command for each replica. Pods of a job have the same command, so each pod
# finds its own index, and keeps TorchX's two promises: the first pod reaches itself as `localhost`,
# and the other pods wait for it only as long as they must.

# A node may still be pulling an image of tens of gigabytes.
_PATIENCE_SECONDS = 1800

REPLICA_ID = "@replica_id@"
"""Placeholder for the pod's index in the command given to `with_index`."""


def with_index(command: Sequence[str], *, port: int | None) -> list[str]:
    """Return ``command`` for all pods, in which each pod puts its index for `REPLICA_ID`.

    Args:
        command: Program and its arguments.
        port: TCP port of the first pod's store, for which other pods wait; None: no pod waits.
    """
    lines = [
        "set -eu",
        "trap 'exit 143' TERM",
        f"declare -i index=${{{FIRST_INDEX}:-0}}+${{VC_TASK_INDEX:-${{{_INDEX}:-0}}}}",
        f'if [ "$index" = 0 ]; then\nexport {RANK_ZERO_HOST}=localhost\n{_wait_for_store(port)}fi',
        f'exec "${{@//{REPLICA_ID}/$index}}"',
    ]
    return ["bash", "-c", "\n".join(lines), "bash", *command]


def _wait_for_store(port: int | None) -> str:
    """Return the shell command by which other pods wait for the first pod's store.

    torchrun's agents give up on a store within a minute.
    """
    if port is None:
        return ""
    return (
        "else\n"
        f'until (: < "/dev/tcp/${RANK_ZERO_HOST}/{port}") 2> /dev/null & wait $!; do\n'
        f'  [ "$SECONDS" -lt {_PATIENCE_SECONDS} ] || '
        f'{{ echo "nobody answered at ${RANK_ZERO_HOST}:{port}" >&2; exit 1; }}\n'
        "  sleep 2 & wait $!\n"
        "done\n"
    )
