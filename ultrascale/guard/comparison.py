"""Comparison of the deployed templates with those that would be deployed."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from ultrascale.documents import Json, Resource
from ultrascale.guard.access import narrowed_bindings
from ultrascale.guard.callers import narrowed_callers
from ultrascale.guard.drift import ended_pool
from ultrascale.guard.exposed_objects import exposed_objects
from ultrascale.guard.exposure import as_decisions, with_exposure
from ultrascale.guard.failures import missing_exports, with_failures
from ultrascale.guard.immutable import refused_objects
from ultrascale.guard.in_use import with_use
from ultrascale.guard.left_behind import left_in_need
from ultrascale.guard.model import Change, Changes, PropertyChange, RolledPool
from ultrascale.guard.node_groups import rolled_pools
from ultrascale.guard.objects import NAMESPACE, NODE_POOL, KubernetesObject, Objects, read_objects
from ultrascale.guard.objects_in_use import TOLD_KINDS, object_in_use
from ultrascale.guard.properties import property_changes
from ultrascale.guard.protection import is_retained, object_protection, with_protection
from ultrascale.guard.queues import newly_gated
from ultrascale.guard.replacement import Worlds, action_of, change_of, propagate
from ultrascale.guard.rights import with_rights
from ultrascale.guard.templates import Key, Templates, World, shown, shown_change, world

# Kinds whose deletion takes many other objects or nodes along, or that something runs by.
_TELLING = frozenset({NODE_POOL, "Namespace", "CustomResourceDefinition", *TOLD_KINDS})
_POLICIES = ("DeletionPolicy", "UpdateReplacePolicy")


def compare(old: Templates, new: Templates, *, region: str) -> Changes:
    """Return what a deployment of ``new`` does to what was deployed from ``old``.

    Stacks that are new, and their resources, are no risk but for names that are taken; stacks that
    are gone stay as they are, as `cdk deploy` has it.

    Args:
        old: The deployed templates, by the names of their stacks.
        new: The templates that would be deployed.
        region: Region, for prices.
    """
    worlds = Worlds(old=world(old), new=world(new))
    objects = read_objects(worlds.old), read_objects(worlds.new)
    changes = propagate(dict(_own(worlds)), worlds)
    judged = with_protection(with_failures(changes, worlds), worlds)
    harmed = with_rights(with_use(judged, worlds, applied=objects), worlds)
    changed = [
        *with_exposure(harmed, worlds, _namespaces(objects[1]) - _namespaces(objects[0])),
        *missing_exports(worlds),
        *refused_objects(objects),
        *narrowed_bindings(objects, worlds),
        *narrowed_callers(objects),
        *newly_gated(objects),
        *exposed_objects(objects, worlds),
        *left_in_need(objects, worlds),
    ]
    gone = list(_gone_objects(objects, worlds))
    pools: list[RolledPool] = list(rolled_pools(changes, worlds, objects, region))
    pools += [
        ended_pool(node_pool, "its NodePool leaves the cluster", region)
        for node_pool, change in gone
        if node_pool.kind == NODE_POOL and change.action == "deleted"
    ]
    return Changes(
        resources=tuple(as_decisions(_merged((*changed, *(change for _, change in gone))))),
        pools=tuple(pools),
        new_stacks=tuple(stack for stack in new if stack not in old),
        left_stacks=tuple(stack for stack in old if stack not in new),
        unread=tuple(dict.fromkeys(holder for side in objects for holder in side.unread)),
    )


def _merged(changes: Iterable[Change]) -> Iterator[Change]:
    """Yield ``changes``, what an object opens with what it loses or fails by."""
    by_object: dict[tuple[str, ...], Change] = {}
    for change in changes:
        key = (*change.ids, change.type)
        other = by_object.get(key)
        if not change.type.startswith("Kubernetes::"):
            yield change
        elif other is None:
            by_object[key] = change
        elif change.opens and not (change.lost or change.fails or other.opens):
            by_object[key] = replace(other, opens=change.opens)
        elif other.opens and not (other.lost or other.fails or change.opens):
            by_object[key] = replace(change, opens=other.opens)
        else:
            yield change
    yield from by_object.values()


def _namespaces(side: Objects) -> set[str]:
    return {namespace.name for namespace in side.of_kind(NAMESPACE)}


def _own(worlds: Worlds) -> Iterator[tuple[Key, Change]]:
    """Yield what changes by itself, of the resources of stacks that stay and of new ones."""
    for stack in worlds.new.templates:
        there = worlds.old.resources(stack)
        wanted = worlds.new.resources(stack)
        for logical_id in wanted:
            key = (stack, logical_id)
            if logical_id not in there:
                yield key, change_of(key, worlds.new, "added")
            elif (change := _changed(key, worlds)) is not None:
                yield key, change
        for logical_id, body in there.items():
            if logical_id not in wanted:
                action = "kept" if is_retained(body) else "deleted"
                yield (stack, logical_id), change_of((stack, logical_id), worlds.old, action)


def _changed(key: Key, worlds: Worlds) -> Change | None:
    stack, logical_id = key
    old, new = worlds.old.resources(stack)[logical_id], worlds.new.resources(stack)[logical_id]
    properties = (*_of_properties(key, worlds), *_of_attributes(key, worlds, old, new))
    if not properties:
        return None
    change = change_of(key, worlds.old, action_of(properties))
    return replace(change, properties=properties)


def _of_properties(key: Key, worlds: Worlds) -> Iterator[PropertyChange]:
    kind = worlds.new.resources(key[0])[key[1]]["Type"]
    yield from property_changes(kind, worlds.old.properties(key), worlds.new.properties(key))


def _of_attributes(
    key: Key, worlds: Worlds, old: Resource, new: Resource
) -> Iterator[PropertyChange]:
    """Yield what changes of a resource beside its properties."""
    if old["Type"] != new["Type"]:
        yield PropertyChange(
            path="Type",
            old=old["Type"],
            new=new["Type"],
            effect="is refused",
            why="CloudFormation gives no resource another type",
        )
    before, after = _condition(key, worlds.old), _condition(key, worlds.new)
    if before != after:
        yield PropertyChange(
            path="Condition",
            old=shown(before),
            new=shown(after),
            effect="may replace",
            why="where it is not met, the resource is deleted",
        )
    for name in _POLICIES:
        if old.get(name) != new.get(name):
            was, becomes = shown_change(old.get(name), new.get(name))
            yield PropertyChange(path=name, old=was, new=becomes, effect="updates")


def _condition(key: Key, side: World) -> Json:
    stack, logical_id = key
    name = side.resources(stack)[logical_id].get("Condition")
    if name is None:
        return None
    return side.value(stack, side.templates[stack].get("Conditions", {}).get(name, name))


def _gone_objects(
    objects: tuple[Objects, Objects], worlds: Worlds
) -> Iterator[tuple[KubernetesObject, Change]]:
    """Yield the objects that leave the cluster, or that nothing applies any more, where it matters.

    A custom resource that leaves its stack deletes what it applied, after everything else was
    applied; an object that leaves a manifest stays, where the manifest has no label to prune by.
    """
    old, new = objects
    for applied in old.by_id.values():
        stack, logical_id = applied.holder
        later = new.by_id.get(applied.id)
        if stack not in worlds.new.templates or (later and later.holder == applied.holder):
            continue
        holder = worlds.old.resources(stack)[logical_id]
        stays = logical_id in worlds.new.resources(stack) or is_retained(holder)
        if stays and (later is not None or applied.kind not in _TELLING):
            continue
        change = _object_change(applied, kept=stays, moved=later)
        if not stays:
            harm = object_protection(applied) or object_in_use(applied, worlds, old)
            change = change if harm is None else change.harmed(harm)
        if applied.kind in _TELLING or change.verdicts:
            yield applied, change


def _object_change(
    applied: KubernetesObject, *, kept: bool, moved: KubernetesObject | None
) -> Change:
    stack, logical_id = applied.holder
    fails = (
        "" if moved is None else f"{'/'.join(moved.holder)} applies it first, and this deletes it"
    )
    return Change(
        stack=stack,
        logical_id=logical_id,
        type=f"Kubernetes::{applied.kind}",
        name=applied.whole_name,
        action="kept" if kept else "deleted",
        fails=fails,
    )
