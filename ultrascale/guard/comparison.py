"""Comparison of the deployed templates with the templates about to be deployed."""

import re
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from ultrascale.catalog.kubernetes import Immutable, lookup_immutable_fields
from ultrascale.core.table import all_parts
from ultrascale.documents import Json, JsonObject, Resource, mapping, objects, sequence, text
from ultrascale.frozen import Frozen
from ultrascale.guard.access import (
    BINDINGS,
    ENTRY,
    is_of_a_program,
    narrowed_bindings,
    people_lose,
    people_of,
)
from ultrascale.guard.drift import ended_pool
from ultrascale.guard.exposed_objects import exposed_objects
from ultrascale.guard.exposure import as_decisions, with_exposure
from ultrascale.guard.failures import missing_exports, with_failures
from ultrascale.guard.iam import with_rights
from ultrascale.guard.in_use import with_use
from ultrascale.guard.judging import KEEP_NODES, KEEP_PODS, program_stops
from ultrascale.guard.model import Change, Changes, Harm, PropertyChange, RolledPool
from ultrascale.guard.network_policies import KIND as NETWORK_POLICY
from ultrascale.guard.network_policies import lets_in, narrowed
from ultrascale.guard.node_groups import rolled_pools
from ultrascale.guard.objects import (
    NAMESPACE,
    NODE_CLASSES,
    NODE_POOL,
    KubernetesObject,
    Objects,
    read_objects,
    updated,
)
from ultrascale.guard.protection import (
    is_retained,
    leaves_cluster,
    object_protection,
    with_protection,
)
from ultrascale.guard.queues import KINDS, newly_gated, queue_in_use, second_engine
from ultrascale.guard.replacement import (
    Worlds,
    action_of,
    change_of,
    propagate,
    property_changes,
    value_at,
)
from ultrascale.guard.templates import (
    Key,
    Templates,
    World,
    quantity,
    shown,
    shown_change,
    text_of,
    world,
)
from ultrascale.guard.updates import harmful_updates, is_plugin
from ultrascale.plan import names

# --- Objects whose change the API server refuses, so that the deployment rolls back ---------------


_DEFINITION = "CustomResourceDefinition"
_WHY = "immutable in Kubernetes"
_STORED = "objects may be stored in it"
_RENAME = (
    "put it back; or give the object another name, or delete it by kubectl first where nothing "
    "needs it meanwhile"
)
# Kueue keeps a flavor for as long as a queue names it: a deletion by kubectl would wait.
# Source: https://github.com/kubernetes-sigs/kueue/blob/v0.19.2/pkg/controller/core/resourceflavor_controller.go
_WITHOUT_TOPOLOGY = (
    "put it back; or hold the queues with this topology, let their jobs end, deploy the file with "
    "`topology: false` in these queues, and then with the change"
)
_INSTEAD = {"ResourceFlavor": _WITHOUT_TOPOLOGY, "Topology": _WITHOUT_TOPOLOGY}


def refused_objects(applied: tuple[Objects, Objects]) -> Iterator[Change]:
    """Yield objects that stay while immutable fields change, which the API server refuses.

    Args:
        applied: The objects in the cluster, of both sides.
    """
    old, new = applied
    for before in old.by_id.values():
        after = new.by_id.get(before.id)
        if after is None or after.body == before.body:
            continue
        refused = tuple(_refused_changes(before, after))
        if refused:
            paths = ", ".join(changed.path for changed in refused)
            yield replace(
                updated(after),
                properties=refused,
                fails=f"Kubernetes refuses another {paths} of a {after.kind} that is there",
                instead=_INSTEAD.get(after.kind, _RENAME),
            )


def _refused_changes(before: KubernetesObject, after: KubernetesObject) -> Iterator[PropertyChange]:
    api_version = text(after.body, "apiVersion")
    for field in lookup_immutable_fields(after.kind, api_version):
        for path in _paths(field, before.body, after.body):
            old, new = value_at(before.body, path), value_at(after.body, path)
            if _is_refused_change(field, old, new):
                yield _change(path, old, new, _WHY)
    if after.kind == _DEFINITION:
        old, new = (_versions(side) for side in (before, after))
        if old - new:
            yield _change("spec/versions", sorted(old), sorted(new), _STORED)


def _paths(field: Immutable, before: JsonObject, after: JsonObject) -> Iterator[str]:
    if field.only_if and value_at(before, field.only_if) is not True:
        return
    if field.if_set and value_at(before, field.if_set) is None:
        return
    if not field.but:
        yield field.path
        return
    for key in {**mapping(value_at(before, field.path)), **mapping(value_at(after, field.path))}:
        if key not in field.but:
            yield f"{field.path}/{key}"


def _is_refused_change(field: Immutable, old: Json, new: Json) -> bool:
    if field.presence:
        return (old is None) != (new is None)
    if field.grows:
        before, after = quantity(old), quantity(new)
        return before is not None and after is not None and after < before
    return old != new


def _versions(definition: KubernetesObject) -> set[str]:
    return {text(version, "name") for version in objects(definition.spec, "versions")}


def _change(path: str, old: Json, new: Json, why: str) -> PropertyChange:
    before, after = shown_change(old, new)
    return PropertyChange(path=path, old=before, new=after, effect="is refused", why=why)


# --- Stacks that left the file and stay deployed, and what of other stacks they need and lose -----


_ASSOCIATION = "AWS::EKS::PodIdentityAssociation"
_CHART = "Custom::AWSCDK-EKS-HelmChart"


class _Runs(Frozen, kw_only=False):
    """The service accounts and groups by which a stack's pods and functions act in the cluster."""

    namespaces: frozenset[str]  # Namespaces of its pods, without those that every stack uses
    accounts: frozenset[tuple[str, str]]  # Service accounts of its pods, by namespace and name
    groups: frozenset[str]  # Kubernetes groups of its functions


def left_in_need(applied: tuple[Objects, Objects], worlds: Worlds) -> Iterator[Change]:
    """Yield the stacks that left the file and stay, and lose resources of other stacks.

    Args:
        applied: The objects in the cluster, of both sides.
        worlds: Both sides.
    """
    old, new = applied
    gone = [item for item in old.by_id.values() if leaves_cluster(item, new, worlds)]
    for stack in worlds.old.templates:
        if stack in worlds.new.templates or not gone:
            continue
        runs = _runs_of_stack(stack, worlds.old, old)
        lost = [
            f"{each.kind} {'/'.join(filter(None, (each.namespace, each.name)))}"
            for each in gone
            if _needs(runs, each)
        ]
        if lost:
            yield Change(
                stack=stack,
                logical_id="LeftBehind",
                type="CloudFormation stack",
                name=stack,
                action="kept",
            ).harmed(_harm(stack, lost))


def _harm(stack: str, lost: list[str]) -> Harm:
    return Harm(
        verdict="outage",
        lost=f"what {stack} needs, which is left behind and runs on: {', '.join(lost)}; without "
        "them its pods get no request, or its programs are refused",
        instead="keep in the file what makes it until nobody uses it, then destroy it first, by "
        f"that file: `cdk destroy --exclusively {stack} -c cluster=FILE`",
    )


def _runs_of_stack(stack: str, world: World, side: Objects) -> _Runs:
    namespaces = {item.namespace for item in side.by_id.values() if item.holder[0] == stack}
    accounts: set[tuple[str, str]] = set()
    groups: set[str] = set()
    for logical_id, body in world.resources(stack).items():
        values = world.properties((stack, logical_id))
        if body["Type"] == _CHART:
            namespaces.add(text(values, "Namespace"))
        elif body["Type"] == _ASSOCIATION:
            namespaces.add(text(values, "Namespace"))
            accounts.add((text(values, "Namespace"), text(values, "ServiceAccount")))
        elif body["Type"] == ENTRY and is_of_a_program(values):
            groups.update(map(text_of, sequence(values, "KubernetesGroups")))
    own = frozenset(namespaces - {"", names.SYSTEM_NAMESPACE})
    return _Runs(own, frozenset(accounts), frozenset(groups))


def _needs(runs: _Runs, applied: KubernetesObject) -> bool:
    if applied.kind == NETWORK_POLICY:
        return applied.namespace in runs.namespaces and lets_in(applied)
    if applied.kind == "ServiceAccount":
        return (applied.namespace, applied.name) in runs.accounts
    if applied.kind in BINDINGS:
        return any(
            text(each, "name") in runs.groups
            if text(each, "kind") == "Group"
            else (text(each, "namespace"), text(each, "name")) in runs.accounts
            for each in objects(applied.body, "subjects")
        )
    return False


# Objects in the cluster that running nodes, pods and people use, and the loss when they go.


_LINK_LOCAL = re.compile(r"169\.254\.\d{1,3}\.\d{1,3}")
_PROGRAM_KINDS = ("DaemonSet", "Deployment", "StatefulSet")
_VOLUME_KINDS = ("PersistentVolume", "PersistentVolumeClaim")
TOLD_KINDS = frozenset({*_PROGRAM_KINDS, *_VOLUME_KINDS})
"""Kinds whose objects the guard reports when the charts drop them and they stay in the cluster."""

_JOBS_LOSE = Harm(
    verdict="outage",
    lost="what jobs that run name: their pods are refused once they restart",
    instead="let the jobs end first, and name it then",
)


def object_in_use(applied: KubernetesObject, worlds: Worlds, old: Objects) -> Harm | None:
    """Return the loss of running nodes, pods and people by the deletion of an object.

    Args:
        applied: The object.
        worlds: Both sides.
        old: The objects in the cluster before.
    """
    if applied.kind == "DaemonSet":
        return _daemon_in_use(applied, worlds.old, old)
    if applied.kind in _PROGRAM_KINDS:
        return program_stops(f"the program {applied.name}")
    if applied.kind in _VOLUME_KINDS:
        return Harm(
            verdict="outage",
            lost="a volume that jobs mount: their next pods wait for it without end",
            instead=KEEP_PODS,
        )
    if applied.kind in KINDS:
        return queue_in_use(applied)
    if applied.kind in ("PriorityClass", "Queue"):
        return _JOBS_LOSE
    if applied.kind in BINDINGS and (people := sorted(people_of(applied, worlds.old))):
        return people_lose(people)
    return None


def _daemon_in_use(applied: KubernetesObject, world: World, old: Objects) -> Harm | None:
    addresses = set(_LINK_LOCAL.findall(text_of(applied.body)))
    asked = sorted(addresses & set(_name_servers(world, old)))
    if asked:
        return Harm(
            verdict="cuts running nodes off",
            lost=f"names: nodes that run give their pods {', '.join(asked)} to ask first, where "
            "nobody would answer",
            instead=KEEP_NODES,
        )
    if is_plugin(applied):
        return Harm(
            verdict="cuts running nodes off",
            lost="devices or volumes of nodes that run: a pod that restarts there cannot start",
            instead=KEEP_NODES,
        )
    return None


def _name_servers(world: World, old: Objects) -> Iterator[str]:
    """Yield the link-local DNS addresses that nodes gave their pods."""
    for node_class in old.of_kind(*NODE_CLASSES):
        yield from _LINK_LOCAL.findall(text_of(node_class.spec))
    for stack in world.templates:
        for logical_id, body in world.resources(stack).items():
            if body["Type"] in ("AWS::EC2::LaunchTemplate", "AWS::SageMaker::Cluster"):
                yield from _LINK_LOCAL.findall(text_of(world.properties((stack, logical_id))))


# Kinds whose deletion takes other objects or nodes along, or stops something that runs.
_TELLING = frozenset({NODE_POOL, "Namespace", "CustomResourceDefinition", *TOLD_KINDS})
_POLICIES = ("DeletionPolicy", "UpdateReplacePolicy")


def compare(old: Templates, new: Templates, *, region: str) -> Changes:
    """Return the changes that a deployment of ``new`` makes to the stacks deployed from ``old``.

    New stacks and their resources are no risk, apart from names that are taken; stacks that
    are gone stay as they are, as `cdk deploy` has it.

    Args:
        old: The deployed templates, by the names of their stacks.
        new: The templates that would be deployed.
        region: Region, for prices.
    """
    worlds = Worlds(old=world(old), new=world(new))
    objects = read_objects(worlds.old), read_objects(worlds.new)
    changes = propagate(dict(_direct_changes(worlds)), worlds)
    judged = with_protection(with_failures(changes, worlds), worlds)
    harmed = with_rights(with_use(judged, worlds, applied=objects), worlds)
    changed = [
        *with_exposure(harmed, worlds, _namespaces(objects[1]) - _namespaces(objects[0])),
        *missing_exports(worlds),
        *refused_objects(objects),
        *narrowed_bindings(objects, worlds),
        *_harmful_to_parts(objects),
        *newly_gated(objects),
        *second_engine(objects, worlds),
        *harmful_updates(objects),
        *narrowed(objects),
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
        resources=tuple(as_decisions(_merged_changes((*changed, *(change for _, change in gone))))),
        pools=tuple(pools),
        new_stacks=tuple(stack for stack in new if stack not in old),
        left_stacks=tuple(stack for stack in old if stack not in new),
        unread=tuple(dict.fromkeys(holder for side in objects for holder in side.unread)),
    )


def _harmful_to_parts(objects: tuple[Objects, Objects]) -> Iterator[Change]:
    for part in all_parts():
        if part.judges_changes:
            yield from part.module("guard").harmful_changes(objects)


def _merged_changes(changes: Iterable[Change]) -> Iterator[Change]:
    """Yield ``changes``, with an object's openings, losses and failures merged into one change."""
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


def _direct_changes(worlds: Worlds) -> Iterator[tuple[Key, Change]]:
    """Yield the direct changes of resources in new stacks and in stacks that stay."""
    for stack in worlds.new.templates:
        there = worlds.old.resources(stack)
        wanted = worlds.new.resources(stack)
        for logical_id in wanted:
            key = (stack, logical_id)
            if logical_id not in there:
                yield key, change_of(key, worlds.new, "added")
            elif (change := _resource_change(key, worlds)) is not None:
                yield key, change
        for logical_id, body in there.items():
            if logical_id not in wanted:
                action = "kept" if is_retained(body) else "deleted"
                yield (stack, logical_id), change_of((stack, logical_id), worlds.old, action)


def _resource_change(key: Key, worlds: Worlds) -> Change | None:
    stack, logical_id = key
    old, new = worlds.old.resources(stack)[logical_id], worlds.new.resources(stack)[logical_id]
    properties = (*_property_changes(key, worlds), *_attribute_changes(key, worlds, old, new))
    if not properties:
        return None
    change = change_of(key, worlds.old, action_of(properties))
    return replace(change, properties=properties)


def _property_changes(key: Key, worlds: Worlds) -> Iterator[PropertyChange]:
    kind = worlds.new.resources(key[0])[key[1]]["Type"]
    yield from property_changes(kind, worlds.old.properties(key), worlds.new.properties(key))


def _attribute_changes(
    key: Key, worlds: Worlds, old: Resource, new: Resource
) -> Iterator[PropertyChange]:
    """Yield the changes of a resource's attributes, such as its policies and its condition."""
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
    """Yield the objects whose end matters: they are deleted, or no stack applies them any more.

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
