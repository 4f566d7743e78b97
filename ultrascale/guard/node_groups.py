"""Running nodes that a change rolls or ends, with their number and hourly price."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from ultrascale.core.table import all_parts
from ultrascale.documents import Json, mapping, objects, sequence, text
from ultrascale.guard import drift
from ultrascale.guard.failures import MANAGED, ROLLED_FOR
from ultrascale.guard.model import Change, RolledPool, Rolling, hourly
from ultrascale.guard.objects import Objects
from ultrascale.guard.protection import (
    fewer_protection,
    is_guarded_stack,
    is_reserved_stack,
    reserved_protection,
    running_protection,
    shorter_protection,
)
from ultrascale.guard.replacement import Worlds, change_of, is_caused, value_at
from ultrascale.guard.templates import (
    UPDATE_POLICY,
    Key,
    World,
    count,
    references,
    shown,
    text_of,
)
from ultrascale.plan import names

SELF_MANAGED = "AWS::AutoScaling::AutoScalingGroup"
TEMPLATE = "AWS::EC2::LaunchTemplate"
_KEPT_IN_ZONES = "Custom::SuspendedZoneRebalancing"
_ZONE = "AvailabilityZone"
_CONTROL_PLANE = "AWS::EKS::Cluster"
_AUTO_MODE = "ComputeConfig/Enabled"
_CHART = "Custom::AWSCDK-EKS-HelmChart"
_KARPENTER = "karpenter"
# Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-updatepolicy.html
_ROLLING_UPDATE = "AutoScalingRollingUpdate"
# Properties in which a group names its launch templates.
_TEMPLATES_OF = ("LaunchTemplate", "MixedInstancesPolicy")
# Source: https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-termination-policies.html
_SCALED_IN = "all at once: Auto Scaling chooses which, busy or not"
_REPLACED = ("replaced", "may be replaced")
_CALENDAR = "Custom::BlockCalendar"
# A time in UTC: the text of an earlier time sorts first.
_UNTIL = "Window/UsableUntil"


def rolled_pools(
    changes: Mapping[Key, Change], worlds: Worlds, applied: tuple[Objects, Objects], region: str
) -> Iterator[RolledPool]:
    """Yield the pools whose running nodes a change concerns.

    Args:
        changes: Changes of resources.
        worlds: Both sides.
        applied: The objects in the cluster, of both sides.
        region: Region, for prices.
    """
    # A group without a change of its own still follows its launch template.
    groups = {
        key: change_of(key, worlds.new, "updated")
        for key in worlds.standing()
        if worlds.new.resources(key[0])[key[1]]["Type"] in (MANAGED, SELF_MANAGED)
    }
    for change in {**groups, **changes}.values():
        if change.type == MANAGED:
            yield from _managed_roll(change, changes, worlds, region)
        elif change.type == SELF_MANAGED:
            yield from _self_managed_roll(change, changes, worlds, region)
        elif change.action not in ("added", "deleted", "kept"):
            for roll in _rolled_by_parts(change.type):
                yield from roll(change, worlds, region)
    yield from _shortened_windows(changes, worlds)
    ended = list(drift.disabled_pools(applied, region)) if _disables_auto_mode(changes) else []
    yield from ended
    told = {pool.pool for pool in ended}
    of_all = tuple(_cluster_wide_drift(changes, worlds.old))
    drifted = drift.drifted_pools(applied, of_all, region)
    yield from (pool for pool in drifted if pool.pool not in told)


def _rolled_by_parts(
    resource: str,
) -> Sequence[Callable[[Change, Worlds, str], Iterator[RolledPool]]]:
    """Return the parts' functions that yield the nodes rolled by a change of ``resource``."""
    modules = (part.module("guard") for part in all_parts() if part.has_guard)
    return [module.ROLLED[resource] for module in modules if resource in module.ROLLED]


def _managed_roll(
    change: Change, changes: Mapping[Key, Change], worlds: Worlds, region: str
) -> Iterator[RolledPool]:
    if change.action in ("added", "kept"):
        return
    key = (change.stack, change.logical_id)
    old = worlds.old.properties(key)
    most = count(value_at(old, "ScalingConfig/MaxSize"))
    gone = _end_of_nodes(change, "the new group is made, then all at once")
    if gone is not None:
        yield _rolled_pool(change, worlds.old, most, gone[0], gone[1], _reasons(change), region)
        return
    of_template = _template_changes(change, changes, worlds)
    why = (*_group_changes(change, ROLLED_FOR, without_version=bool(of_template)), *of_template)
    if why:
        update = mapping(worlds.new.properties(key), "UpdateConfig")
        at_once = f"{update.get('MaxUnavailable', 1)} at a time, by EKS"
        yield _rolled_pool(change, worlds.old, most, "rolls", at_once, why, region)
    sizes = ("ScalingConfig/MaxSize", "ScalingConfig/DesiredSize")
    yield from _surplus_nodes(change, worlds, sizes, region)


def _self_managed_roll(
    change: Change, changes: Mapping[Key, Change], worlds: Worlds, region: str
) -> Iterator[RolledPool]:
    if change.action in ("added", "kept"):
        return
    most = count(worlds.old.properties((change.stack, change.logical_id)).get("MaxSize"))
    gone = _end_of_nodes(change, "the new group is made, then all at once")
    if gone is not None:
        yield _rolled_pool(change, worlds.old, most, gone[0], gone[1], _reasons(change), region)
        return
    of_template = _template_changes(change, changes, worlds)
    why = (*_group_changes(change, _TEMPLATES_OF, without_version=bool(of_template)), *of_template)
    policy = mapping(worlds.new.properties((change.stack, change.logical_id)), UPDATE_POLICY)
    if why and _ROLLING_UPDATE in policy:
        at_once = "in the batches of its update policy"
        yield _rolled_pool(change, worlds.old, most, "rolls", at_once, why, region)
    elif why:
        at_once = "none: only nodes that are launched from now on are other ones"
        yield _rolled_pool(change, worlds.old, most, "new nodes", at_once, why, region)
    moved = _other_zones(change, worlds)
    if moved:
        at_once = "by EC2 Auto Scaling, as it balances the zones"
        yield _rolled_pool(change, worlds.old, most, "rolls", at_once, moved, region)
    yield from _surplus_nodes(change, worlds, ("MaxSize", "DesiredCapacity"), region)


def _end_of_nodes(change: Change, at_once: str) -> tuple[Rolling, str] | None:
    if change.action == "deleted":
        return "ends", "all at once"
    if change.action in _REPLACED:
        return ("ends" if change.action == "replaced" else "may roll"), at_once
    return None


def _reasons(change: Change) -> tuple[str, ...]:
    if change.action == "deleted":
        return ("it leaves its stack",)
    return tuple(
        f"{changed.path} from {changed.old} to {changed.new}"
        for changed in change.properties
        if changed.effect != "updates"
    )


def _group_changes(
    change: Change, paths: Sequence[str], *, without_version: bool
) -> tuple[str, ...]:
    """Return a group's own changes; ``without_version`` leaves a new template version out."""
    return tuple(
        f"{changed.path} from {changed.old} to {changed.new}"
        for changed in change.properties
        if changed.path.split("/")[0] in paths and not (without_version and is_caused(changed))
    )


def _template_changes(
    change: Change, changes: Mapping[Key, Change], worlds: Worlds
) -> tuple[str, ...]:
    values = worlds.new.properties((change.stack, change.logical_id))
    reasons: dict[str, None] = {}
    for reference in references([values.get(place) for place in _TEMPLATES_OF]):
        template = changes.get(reference.resource)
        if template is not None and template.type == TEMPLATE:
            for changed in template.properties:
                reasons[f"{changed.path} from {changed.old} to {changed.new}"] = None
    return tuple(reasons)


def _other_zones(change: Change, worlds: Worlds) -> tuple[str, ...]:
    """Return the zone changes of a group that Auto Scaling keeps in balance.

    Source: https://docs.aws.amazon.com/autoscaling/ec2/userguide/suspend-resume-considerations.html
    """
    standing = worlds.old.resources(change.stack).values()
    if any(body["Type"] == _KEPT_IN_ZONES for body in standing):
        return ()
    old, new = (
        _zones((change.stack, change.logical_id), side) for side in (worlds.old, worlds.new)
    )
    return () if old == new else (f"zones from {shown(old)} to {shown(new)}",)


def _zones(group: Key, world: World) -> list[str]:
    """Return the zones of a group's subnets, as far as the templates hold the subnets."""
    subnets = references(world.properties(group).get("VPCZoneIdentifier"))
    return sorted({text_of(world.properties(subnet.resource).get(_ZONE, "")) for subnet in subnets})


def _surplus_nodes(
    change: Change, worlds: Worlds, sizes: Sequence[str], region: str
) -> Iterator[RolledPool]:
    """Yield the nodes above a node group's lowered maximum or desired size.

    A lower minimum ends no node; the group's autoscaler may later end nodes without jobs.
    """
    key = (change.stack, change.logical_id)
    old, new = worlds.old.properties(key), worlds.new.properties(key)
    pairs = {path: (count(value_at(old, path)), count(value_at(new, path))) for path in sizes}
    lowered = {
        path: (before, after)
        for path, (before, after) in pairs.items()
        if before is not None and after is not None and after < before
    }
    if lowered:
        why = tuple(f"{path} from {old} to {new}" for path, (old, new) in lowered.items())
        nodes = max(before - after for before, after in lowered.values())
        fewer = _rolled_pool(change, worlds.old, nodes, "ends", _SCALED_IN, why, region)
        guarded = is_guarded_stack(worlds.old, change.stack)
        reserved = is_reserved_stack(worlds.old, change.stack)
        loss = fewer_protection() if reserved else running_protection()
        lost, instead = loss if guarded else ("", "")
        yield replace(fewer, lost=lost, instead=instead, reserved=reserved)


def _rolled_pool(
    change: Change,
    old: World,
    nodes: int | None,
    rolling: Rolling,
    at_once: str,
    why: tuple[str, ...],
    region: str,
) -> RolledPool:
    # A deleted group is protected as a resource.
    rolls = rolling == "rolls" and is_guarded_stack(old, change.stack)
    reserved = is_reserved_stack(old, change.stack)
    loss = reserved_protection() if reserved else running_protection()
    lost, instead = loss if rolls else ("", "")
    return RolledPool(
        pool=_pool_name(change, old),
        stack=change.stack,
        rolling=rolling,
        nodes=nodes,
        at_once=at_once,
        why=why,
        usd_per_hour=hourly(nodes, _instance_types(change, old), region),
        lost=lost,
        instead=instead,
        reserved=reserved,
    )


def _pool_name(change: Change, world: World) -> str:
    values = world.properties((change.stack, change.logical_id))
    label = text(values, "Labels", names.POOL_LABEL)
    if label:
        return label
    if change.type == SELF_MANAGED:
        for tag in objects(values, "Tags"):
            if tag.get("Key") == names.POOL_LABEL:
                return text(tag, "Value")
    return change.stack


def _instance_types(change: Change, world: World) -> Sequence[str]:
    values = world.properties((change.stack, change.logical_id))
    own = sequence(values, "InstanceTypes")
    if own:
        return [text_of(name) for name in own]
    types = [*_types_in(values)]
    for reference in references([values.get(place) for place in _TEMPLATES_OF]):
        stack, logical_id = reference.resource
        if logical_id in world.resources(stack):
            types += _types_in(world.properties(reference.resource))
    return tuple(dict.fromkeys(types))


def _types_in(value: Json) -> Iterator[str]:
    """Yield every instance type that a launch template or an override names."""
    for key, item in mapping(value).items():
        if key == "InstanceType" and isinstance(item, str):
            yield item
        else:
            yield from _types_in(item)
    for item in sequence(value):
        yield from _types_in(item)


def _shortened_windows(changes: Mapping[Key, Change], worlds: Worlds) -> Iterator[RolledPool]:
    """Yield the Capacity Block pools that the changed calendar empties earlier."""
    for key, change in changes.items():
        if change.type != _CALENDAR or change.action != "updated":
            continue
        old, new = worlds.old.properties(key), worlds.new.properties(key)
        before, after = value_at(old, _UNTIL), value_at(new, _UNTIL)
        if isinstance(before, str) and isinstance(after, str) and after < before:
            lost, instead = shorter_protection()
            yield RolledPool(
                pool=str(old["Pool"]),
                stack=change.stack,
                rolling="ends",
                nodes=count(old.get("Size")),
                at_once="all at once, by its calendar",
                why=(f"{_UNTIL} from {before} to {after}",),
                usd_per_hour=None,
                lost=lost,
                instead=instead,
            )


def _disables_auto_mode(changes: Mapping[Key, Change]) -> bool:
    return any(
        change.type == _CONTROL_PLANE and changed.path == _AUTO_MODE and changed.new == "false"
        for change in changes.values()
        for changed in change.properties
    )


def _cluster_wide_drift(changes: Mapping[Key, Change], old: World) -> Iterator[str]:
    """Yield the changes by which every node of every NodePool may drift.

    Sources:
        https://karpenter.sh/docs/concepts/disruption/#drift
        https://karpenter.sh/docs/upgrading/upgrade-guide/
    """
    for key, change in changes.items():
        if not change.properties:
            continue
        if change.type == _CHART and old.properties(key).get("Release") == _KARPENTER:
            subject = drift.KARPENTER
        elif change.type == _CONTROL_PLANE:
            subject = "the cluster"
        else:
            continue
        for changed in change.properties:
            if changed.path == "Version":
                yield f"{subject}'s Version from {changed.old} to {changed.new}"
