"""The nodes that templates of a chart's values choose, in a cluster's own words."""

from collections.abc import Mapping, Sequence

from ultrascale import config
from ultrascale.jobs.values_pieces import TEMPLATES, Piece, joined
from ultrascale.plan import names
from ultrascale.plan.jobs.pods import unborne_taints
from ultrascale.plan.model import ClusterPlan, PoolPlan
from ultrascale.plan.pools.tiers import node_tiers

_NODE_TYPE = names.NODE_TYPE_LABEL
_TIERS = "nodeSelectors"
Tiers = Mapping[str, config.NodeTier]
# Labels by the keys of the values that say them.
Labels = Mapping[config.KeyPath, str]


def placement(
    reading: config.JobValuesReading, template: str, chosen: config.JobTemplate, plan: ClusterPlan
) -> Piece:
    """Return what a template says of its nodes.

    With a `node-type` it runs there. Without, it may run on each enabled tier that its labels
    agree with, reserved nodes first: Helm knows no order of tiers.

    Args:
        reading: The values.
        template: Name of the template.
        chosen: The template.
        plan: The cluster.
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
        return _nowhere(reading, at, agreeing)
    own: Labels = {(*at, key): value for key, value in selector.items()}
    types = [selector[_NODE_TYPE]] if _NODE_TYPE in selector else _in_order(enabled, plan)
    if len(types) == 1:
        labels = {**_common(enabled), **own}
        piece = _strict(labels, types[0], plan)
    else:
        piece = _preferring(enabled, own, types, plan)
    return joined(piece, _tolerated(template, chosen, _pools(types, plan)))


def _nowhere(reading: config.JobValuesReading, at: config.KeyPath, disabled: Tiers) -> Piece:
    if not reading.is_sound(_TIERS):
        return Piece()
    if disabled:
        said = ", ".join(f"{_TIERS}.{name}.enabled" for name in disabled)
        mistake = config.Mistake(at, "nodes of a tier that is disabled", f"set {said}: true")
    else:
        todo = f"name the {_NODE_TYPE} of a tier of {_TIERS}"
        mistake = config.Mistake(at, "no enabled tier has such nodes", todo)
    return Piece(mistakes=(mistake,))


def _in_order(tiers: Tiers, plan: ClusterPlan) -> list[str]:
    """Return the node types of ``tiers``; those that the cluster does not have come last."""
    wanted = dict.fromkeys(tier.labels[_NODE_TYPE] for tier in tiers.values())
    known = [tier.node_type for tier in node_tiers(plan)]
    return [*(each for each in known if each in wanted), *(t for t in wanted if t not in known)]


def _pools(types: Sequence[str], plan: ClusterPlan) -> tuple[PoolPlan, ...]:
    return tuple(
        pool for tier in node_tiers(plan) if tier.node_type in types for pool in tier.pools
    )


def _common(tiers: Tiers) -> Labels:
    """Return the labels that all of ``tiers``, which are of one node type, have in common."""
    return {
        (_TIERS, name, "labels", key): value
        for name, tier in tiers.items()
        for key, value in tier.labels.items()
        if all(other.labels.get(key) == value for other in tiers.values())
    }


def _strict(labels: Labels, node_type: str, plan: ClusterPlan) -> Piece:
    """Return the labels as a selector, without those that would keep the job off all nodes."""
    pools = _pools([node_type], plan)
    unknown = {at: value for at, value in labels.items() if _is_on_none(at[-1], value, pools)}
    kept = {at: value for at, value in labels.items() if at not in unknown}
    return Piece(
        keys={"node_selector": {str(at[-1]): value for at, value in kept.items()}},
        places={
            **{("node_selector", at[-1]): at for at in kept},
            **{(key,): _place_of_nodes(labels) for key in ("pool", "node_selector")},
        },
        notes={at: _left_out(at[-1], value, plan) for at, value in unknown.items()},
    )


def _place_of_nodes(labels: Labels) -> config.KeyPath:
    return next((at for at in reversed([*labels]) if at[-1] == _NODE_TYPE), ())


def _preferring(tiers: Tiers, own: Labels, types: Sequence[str], plan: ClusterPlan) -> Piece:
    """Return the node types as an order of preference, which knows no other labels."""
    places: dict[config.KeyPath, config.KeyPath] = {
        ("prefer",): (_TIERS,),
        ("pool",): (_TIERS,),
    }
    unknown: dict[config.KeyPath, str] = {}
    mistakes: list[config.Mistake] = []
    judged = [(at, value, _pools(types, plan)) for at, value in own.items()]
    for name, tier in tiers.items():
        node_type = tier.labels[_NODE_TYPE]
        places["prefer", types.index(node_type)] = (_TIERS, name, "labels", _NODE_TYPE)
        for key, value in tier.labels.items():
            judged.append(((_TIERS, name, "labels", key), value, _pools([node_type], plan)))
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
        notes={at: _left_out(at[-1], value, plan) for at, value in unknown.items()},
    )


def _is_on_none(key: str | int, value: str, pools: Sequence[PoolPlan]) -> bool:
    """Return whether no node has a label that somebody made up.

    Labels of Kubernetes, of AWS and of this project have a domain; what is wrong with these, the
    rules of jobs say.
    """
    made_up = key != _NODE_TYPE and "/" not in str(key)
    return made_up and bool(pools) and all(pool.labels.get(str(key)) != value for pool in pools)


def _left_out(key: str | int, value: str, plan: ClusterPlan) -> str:
    there: dict[str, list[str]] = {}
    for pool in plan.pools:
        if str(key) in pool.labels:
            there.setdefault(pool.labels[str(key)], []).append(pool.name)
    known = ", ".join(f"{found} on {' and '.join(pools)}" for found, pools in there.items())
    pools = f"there is {known}" if known else "no pool has such a label"
    return f"{value!r} is left out, as no node there has it; {pools}"


def _tolerated(template: str, chosen: config.JobTemplate, pools: Sequence[PoolPlan]) -> Piece:
    """Return the tolerations of a template; those of its nodes' taints are added to every job."""
    unborne = unborne_taints(chosen.tolerations, pools)
    missing = [f"{taint.key}={taint.value}:{taint.effect}" for taint in unborne]
    at = (TEMPLATES, template, "tolerations")
    notes: dict[config.KeyPath, str] = {}
    if missing:
        where = " and ".join(sorted({pool.pool for pool in pools if pool.taints}))
        notes[at] = f"{', '.join(missing)} is added, as nodes of {where} have that taint"
    return Piece(
        keys={"tolerations": [each.model_dump(exclude_none=True) for each in chosen.tolerations]},
        places={("tolerations",): at},
        notes=notes,
    )
