"""Translation of a Helm release's values of the chart `training-job` into a job.

A value that cannot work in the cluster is corrected with a note where its meaning is clear, and
refused where it is not.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import field

from ultrascale import config
from ultrascale.catalog import quantities, runtime_environment
from ultrascale.documents import Json, JsonObject
from ultrascale.frozen import Frozen
from ultrascale.plan import names
from ultrascale.plan.jobs.pods import unborne_taints
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.model import ClusterPlan, PoolPlan, PriorityClassPlan
from ultrascale.plan.pools.tiers import node_tiers

DATA_PATH, CHECKPOINT_PATH = "/data", "/checkpoints"
MODEL_TYPE = "MODEL_TYPE"
_SIZES = {"cpu": quantities.millicpu, "memory": quantities.amount}
_DEVICES = ("gpu", "neuron", "efa")
TEMPLATES = "jobTemplates"
Places = Mapping[config.KeyPath, config.KeyPath]
_NODE_TYPE = names.NODE_TYPE_LABEL
_TIERS = "nodeSelectors"
Tiers = Mapping[str, config.NodeTier]
# Labels by their keys in the values.
Labels = Mapping[config.KeyPath, str]


class Piece(Frozen):
    """Some keys of a job."""

    keys: JsonObject = field(default_factory=dict[str, Json])  # The keys
    # Keys of the values behind them.
    places: Places = field(default_factory=dict[config.KeyPath, config.KeyPath])
    mistakes: tuple[config.Mistake, ...] = ()  # Mistakes of the values, at their own keys
    # Values that do not hold in the cluster, by their keys.
    notes: Mapping[config.KeyPath, str] = field(default_factory=dict[config.KeyPath, str])


def _joint_piece(*pieces: Piece) -> Piece:
    return Piece(
        keys={key: value for piece in pieces for key, value in piece.keys.items()},
        places={key: place for piece in pieces for key, place in piece.places.items()},
        mistakes=tuple(mistake for piece in pieces for mistake in piece.mistakes),
        notes={at: note for piece in pieces for at, note in piece.notes.items()},
    )


def translate(
    values: Path | str | JsonObject, template: str, plan: ClusterPlan
) -> config.TranslatedJob:
    """Return the job that values of the chart describe.

    Args:
        values: A file of values, or the values; they are laid over the chart's own.
        template: The job's template, one of their `jobTemplates`.
        plan: The job's cluster.

    Raises:
        ConfigError: The file cannot be read, or there is no such template.
    """
    values = Path(values) if isinstance(values, str) else values
    reading = config.read_job_values(values, template)
    chosen = reading.template
    if chosen is None:
        raise reading.refusal(*_unknown(reading, template))
    name = reading.values.name or template
    piece = _joint_piece(
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
        _placement(reading, template, chosen, plan.pools, plan.all_pools),
        _resources(template, chosen),
        _priority(reading, template, chosen, plan.priority_classes),
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
            # The values name the claims, and their program alone knows where on them it writes.
            "durable": False,
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
    keys: dict[str, Json] = {"env": dict(sorted(env.items()))}
    if values.allow_env:
        keys["allow_env"] = [*values.allow_env]
        places["allow_env",] = ("allowEnv",)
    return Piece(keys=keys, places=places, notes=notes)


def _volumes(values: config.JobValues) -> Piece:
    claims = {
        "dataPvcName": (values.data_pvc_name, DATA_PATH),
        "checkpointPvcName": (values.checkpoint_pvc_name, CHECKPOINT_PATH),
    }
    mounts = {key: (claim, path) for key, (claim, path) in claims.items() if claim}
    return Piece(
        keys={
            # Whether they exist is judged once their namespace is known.
            "volumes": [
                {"claim": claim, "mount_path": path, "existing": True}
                for claim, path in mounts.values()
            ]
        },
        places={("volumes", number, "claim"): (key,) for number, key in enumerate(mounts)},
    )


def _priority(
    reading: config.JobValuesReading,
    template: str,
    chosen: config.JobTemplate,
    priority_classes: Sequence[PriorityClassPlan],
) -> Piece:
    known = {priority.name: priority for priority in priority_classes}
    notes: dict[config.KeyPath, str] = {}
    for name, stated in reading.values.priority_classes.items():
        at = ("priorityClasses", name)
        if not reading.states(*at):
            continue
        own = known.get(name)
        if own is None:
            notes[at] = "is not made: the classes of the cluster file are"
            continue
        if stated.value != own.value:
            notes[(*at, "value")] = f"{stated.value} does not count: the cluster's is {own.value}"
        if stated.preemption_policy is not None:
            preempts = stated.preemption_policy != "Never"
            if preempts != own.preempts:
                does = "displace those of lower priority" if own.preempts else "displace none"
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


def _placement(
    reading: config.JobValuesReading,
    template: str,
    chosen: config.JobTemplate,
    pools: Sequence[PoolPlan],
    all_pools: Sequence[PoolPlan],
) -> Piece:
    """Return a template's keys for its nodes.

    With a `node-type` it runs there. Without, it may run on each enabled tier that its labels agree
    with, reserved nodes first: Helm knows no order of tiers.

    Args:
        reading: The values.
        template: Name of the template.
        chosen: The template.
        pools: Pools of the cluster, but those of the system.
        all_pools: Pools of the cluster, those of the system first.
    """
    at = (TEMPLATES, template, "nodeSelector")
    selector = chosen.node_selector
    agreeing = {
        name: tier
        for name, tier in reading.values.node_selectors.items()
        if all(selector.get(key, value) == value for key, value in tier.labels.items())
    }
    enabled = {name: tier for name, tier in agreeing.items() if tier.enabled}
    if not enabled and (agreeing or _NODE_TYPE not in selector):
        return _without_nodes(reading, at, agreeing)
    own: Labels = {(*at, key): value for key, value in selector.items()}
    types = [selector[_NODE_TYPE]] if _NODE_TYPE in selector else _ordered_types(enabled, all_pools)
    if len(types) == 1:
        labels = {**_common(enabled), **own}
        piece = _selector(labels, types[0], pools, all_pools)
    else:
        piece = _preference(enabled, own, types, pools, all_pools)
    return _joint_piece(piece, _tolerations(template, chosen, _pools(types, all_pools)))


def _without_nodes(reading: config.JobValuesReading, at: config.KeyPath, disabled: Tiers) -> Piece:
    if not reading.is_sound(_TIERS):
        return Piece()
    if disabled:
        said = ", ".join(f"{_TIERS}.{name}.enabled" for name in disabled)
        mistake = config.Mistake(at, "nodes of a tier that is disabled", f"set {said}: true")
    else:
        todo = f"name the {_NODE_TYPE} of a tier of {_TIERS}"
        mistake = config.Mistake(at, "no enabled tier has such nodes", todo)
    return Piece(mistakes=(mistake,))


def _ordered_types(tiers: Tiers, pools: Sequence[PoolPlan]) -> list[str]:
    """Return the node types of ``tiers``; those that the cluster does not have come last."""
    wanted = dict.fromkeys(tier.labels[_NODE_TYPE] for tier in tiers.values())
    known = [tier.node_type for tier in node_tiers(pools)]
    return [*(name for name in known if name in wanted), *(t for t in wanted if t not in known)]


def _pools(types: Sequence[str], pools: Sequence[PoolPlan]) -> tuple[PoolPlan, ...]:
    return tuple(
        pool for tier in node_tiers(pools) if tier.node_type in types for pool in tier.pools
    )


def _common(tiers: Tiers) -> Labels:
    """Return the labels that all of ``tiers``, which are of one node type, have in common."""
    return {
        (_TIERS, name, "labels", key): value
        for name, tier in tiers.items()
        for key, value in tier.labels.items()
        if all(other.labels.get(key) == value for other in tiers.values())
    }


def _selector(
    labels: Labels, node_type: str, worker_pools: Sequence[PoolPlan], all_pools: Sequence[PoolPlan]
) -> Piece:
    """Return the labels as a selector, without those that would keep the job off all nodes."""
    pools = _pools([node_type], all_pools)
    unknown = {at: value for at, value in labels.items() if _is_on_none(at[-1], value, pools)}
    kept = {at: value for at, value in labels.items() if at not in unknown}
    return Piece(
        keys={"node_selector": {str(at[-1]): value for at, value in kept.items()}},
        places={
            **{("node_selector", at[-1]): at for at in kept},
            **{(key,): _place_of_nodes(labels) for key in ("pool", "node_selector")},
        },
        notes={at: _note_on_label(at[-1], value, worker_pools) for at, value in unknown.items()},
    )


def _place_of_nodes(labels: Labels) -> config.KeyPath:
    return next((at for at in reversed([*labels]) if at[-1] == _NODE_TYPE), ())


def _preference(
    tiers: Tiers,
    own: Labels,
    types: Sequence[str],
    worker_pools: Sequence[PoolPlan],
    all_pools: Sequence[PoolPlan],
) -> Piece:
    """Return the node types as an order of preference, which knows no other labels."""
    places: dict[config.KeyPath, config.KeyPath] = {
        ("prefer",): (_TIERS,),
        ("pool",): (_TIERS,),
    }
    unknown: dict[config.KeyPath, str] = {}
    mistakes: list[config.Mistake] = []
    judged = [(at, value, _pools(types, all_pools)) for at, value in own.items()]
    for name, tier in tiers.items():
        node_type = tier.labels[_NODE_TYPE]
        places["prefer", types.index(node_type)] = (_TIERS, name, "labels", _NODE_TYPE)
        for key, value in tier.labels.items():
            judged.append(((_TIERS, name, "labels", key), value, _pools([node_type], all_pools)))
    for at, value, pools in judged:
        if _is_on_none(at[-1], value, pools):
            unknown[at] = value
        elif any(pool.labels.get(str(at[-1])) != value for pool in pools):
            wrong = "a label of some of the nodes that an order of preference leaves open"
            todo = f"leave it out, or add {_NODE_TYPE} to the template's nodeSelector"
            mistakes.append(config.Mistake(at, wrong, todo))
    return Piece(
        keys={"prefer": [*types]},
        places=places,
        mistakes=tuple(mistakes),
        notes={at: _note_on_label(at[-1], value, worker_pools) for at, value in unknown.items()},
    )


def _is_on_none(key: str | int, value: str, pools: Sequence[PoolPlan]) -> bool:
    """Return whether no node has a label of the user's own.

    Labels of Kubernetes, of AWS and of this project have a domain; the rules of jobs check those.
    """
    made_up = key != _NODE_TYPE and "/" not in str(key)
    return made_up and bool(pools) and all(pool.labels.get(str(key)) != value for pool in pools)


def _note_on_label(key: str | int, value: str, worker_pools: Sequence[PoolPlan]) -> str:
    there: dict[str, list[str]] = {}
    for pool in worker_pools:
        if str(key) in pool.labels:
            there.setdefault(pool.labels[str(key)], []).append(pool.name)
    known = ", ".join(f"{value} on {' and '.join(pools)}" for value, pools in there.items())
    pools = f"there is {known}" if known else "no pool has such a label"
    return f"{value!r} is left out, as no node there has it; {pools}"


def _tolerations(template: str, chosen: config.JobTemplate, pools: Sequence[PoolPlan]) -> Piece:
    """Return the tolerations of a template; those of its nodes' taints are added to every job."""
    unborne = unborne_taints(chosen.tolerations, pools)
    missing = [f"{taint.key}={taint.value}:{taint.effect}" for taint in unborne]
    at = (TEMPLATES, template, "tolerations")
    notes: dict[config.KeyPath, str] = {}
    if missing:
        where = " and ".join(sorted({pool.pool for pool in pools if pool.taints}))
        notes[at] = f"{', '.join(missing)} is added, as nodes of {where} have that taint"
    return Piece(
        keys={
            "tolerations": [
                toleration.model_dump(exclude_none=True) for toleration in chosen.tolerations
            ]
        },
        places={("tolerations",): at},
        notes=notes,
    )


class _Amount(Frozen):
    """A resource as a template states it; None where it states none."""

    key: str
    limit: str | int | None
    request: str | int | None

    @property
    def exceeds(self) -> bool:
        if self.limit is None or self.request is None:
            return False
        size = _SIZES.get(self.key, quantities.amount)
        return size(str(self.request)) > size(str(self.limit))

    @property
    def counts(self) -> str | int | None:
        """Resources that the job asks for: for CPU the request, as it has no limit."""
        first, second = self.limit, self.request
        if self.key == "cpu":
            first, second = second, first
        return second if first is None else first


def _resources(template: str, chosen: config.JobTemplate) -> Piece:
    """Return the resources of a template.

    A job gets only the devices that it asks for, as in Kubernetes.
    """
    at = (TEMPLATES, template, "resources")
    amounts = [*_amounts(chosen.resources)]
    keys = {amount.key: amount.counts for amount in amounts if amount.counts is not None}
    if "neuron" not in keys:
        keys.setdefault("gpu", 0)
    places: dict[config.KeyPath, config.KeyPath] = {("resources",): at}
    notes: dict[config.KeyPath, str] = {}
    mistakes: list[config.Mistake] = []
    for amount in amounts:
        word = _kubernetes_name(amount.key)
        stated = "limits" if amount.counts == amount.limit else "requests"
        places["resources", amount.key] = (*at, stated, word)
        if amount.exceeds:
            wrong = f"more than its limit, {amount.limit}"
            mistakes.append(config.Mistake((*at, "requests", word), wrong, "raise the limit"))
        elif note := _note(amount):
            where = "requests" if amount.key in _DEVICES else "limits"
            notes[(*at, where, word)] = note
    return Piece(keys={"resources": keys}, places=places, mistakes=tuple(mistakes), notes=notes)


def _amounts(stated: config.ContainerResources) -> Iterator[_Amount]:
    for key in (*_DEVICES, "cpu", "memory"):
        yield _Amount(
            key=key, limit=getattr(stated.limits, key), request=getattr(stated.requests, key)
        )


def _kubernetes_name(key: str) -> str:
    return config.ResourceAmounts.model_fields[key].alias or key


def _note(amount: _Amount) -> str | None:
    if amount.key == "cpu":
        if amount.limit is None:
            return None
        return (
            f"{amount.limit} is left out: a limit would throttle a pod whose node has CPU to spare"
        )
    if amount.limit is None or amount.request in (None, amount.limit):
        return None
    if amount.key == "memory":
        return f"{amount.limit} is requested as well: what a pod may use is kept for it"
    return (
        f"{amount.request} is not its limit, {amount.limit}, and Kubernetes gives devices only "
        f"where both are equal: {amount.limit} count"
    )
