"""Changes that CloudFormation cannot make: it would roll the deployment back."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from ultrascale.catalog import cloudformation
from ultrascale.documents import JsonObject
from ultrascale.guard.model import Change
from ultrascale.guard.replacement import Worlds, change_of, value_at
from ultrascale.guard.templates import Key, World, references, shown

MANAGED = "AWS::EKS::Nodegroup"
ROLLED_FOR = ("LaunchTemplate", "ReleaseVersion", "Version")
"""Properties of a managed group for which EKS replaces its nodes.

Source: https://docs.aws.amazon.com/eks/latest/userguide/managed-node-update-behavior.html
"""
_OF_TEMPLATES = ("DeletionPolicy", "UpdateReplacePolicy", "Condition")

_NEW = ("replaced", "may be replaced")
_GONE = ("deleted", "kept")


def with_failures(changes: Mapping[Key, Change], worlds: Worlds) -> Iterator[Change]:
    """Yield ``changes``, each with the reason why CloudFormation cannot make it."""
    gone = _taken_names(changes, worlds)
    exported = _blocked_exports(changes, worlds)
    for key, change in changes.items():
        reasons = [
            *_refused_updates(change),
            *_combined_update_failures(change),
            *_same_name_failures(change, changes, worlds),
            *_taken_name(change, gone, worlds.new),
            *_protected_by_itself(key, change, worlds.old),
            *exported.get(key, ()),
        ]
        yield replace(change, fails="; ".join(reasons)) if reasons else change


def missing_exports(worlds: Worlds) -> Iterator[Change]:
    """Yield exports that end while an unchanged deployed stack still imports them.

    CloudFormation updates a producer before its importers.

    Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-stack-exports.html
    """
    for name, (stack, _) in worlds.old.exports.items():
        users = [user for user in worlds.old.importers.get(name, ()) if user != stack]
        if stack in worlds.new.templates and name not in worlds.new.exports and users:
            yield Change(
                stack=stack,
                logical_id=name.rpartition(":")[2],
                type="CloudFormation export",
                name=name,
                action="deleted",
                fails=f"{', '.join(users)} still imports it; {_release(users, worlds)}",
            )


def _release(users: Sequence[str], worlds: Worlds) -> str:
    """Return how to release an export: deploy its importer, or destroy an importer that left."""
    left = [user for user in users if user not in worlds.new.templates]
    if left:
        return (
            "destroy what left the file, by the file that still has it: "
            f"`cdk destroy --exclusively {left[0]} -c cluster=FILE`"
        )
    return (
        f"deploy that first, or destroy it: `cdk deploy --exclusively {users[0]} -c cluster=FILE`"
    )


def _refused_updates(change: Change) -> Iterator[str]:
    for changed in change.properties:
        if changed.effect == "is refused":
            yield f"{changed.path} from {changed.old} to {changed.new}: {changed.why}"


def _combined_update_failures(change: Change) -> Iterator[str]:
    """Yield a failure where one update both rolls a managed group and changes its settings.

    Source: https://github.com/aws/containers-roadmap/issues/1258
    """
    if change.type != MANAGED or change.action != "updated":
        return
    paths = [changed.path for changed in change.properties]
    rolled = [path for path in paths if path.split("/")[0] in ROLLED_FOR]
    others = [path for path in paths if path not in rolled and path not in _OF_TEMPLATES]
    if rolled and others:
        yield (
            f"CloudFormation refuses to change {', '.join(rolled)} of a managed group together "
            f"with {', '.join(others)}: deploy the one, then the other"
        )


def _unique_name(change: Change, world: World) -> JsonObject | None:
    """Return the properties that form a unique name; None if AWS picks the name."""
    behavior = cloudformation.lookup_update_behavior(change.type)
    if behavior is None or not behavior.name:
        return None
    values = world.properties((change.stack, change.logical_id))
    name = {path: value_at(values, path) for path in behavior.name}
    return None if None in name.values() else name


def _same_name_failures(
    change: Change, changes: Mapping[Key, Change], worlds: Worlds
) -> Iterator[str]:
    """Yield a failure where the new resource would stand beside the old one under the same name.

    Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-name.html
    """
    behavior = cloudformation.lookup_update_behavior(change.type)
    if change.action != "replaced" or behavior is None or behavior.deletes_first:
        return
    old, new = _unique_name(change, worlds.old), _unique_name(change, worlds.new)
    if new is None or old != new:
        return
    renewed = any(
        other.action in _NEW
        for value in new.values()
        for reference in references(value)
        if (other := changes.get(reference.resource)) is not None
    )
    if not renewed:
        yield f"the new one is made before the old one goes, and both would be {_name_text(new)}"


def _taken_names(
    changes: Mapping[Key, Change], worlds: Worlds
) -> Sequence[tuple[Change, JsonObject]]:
    """Return the changes that free or take a unique name, each with the name's properties."""
    left = [
        change_of((stack, logical_id), worlds.old, "kept")
        for stack in worlds.old.templates
        if stack not in worlds.new.templates
        for logical_id in worlds.old.resources(stack)
    ]
    return [
        (change, name)
        for change in (*changes.values(), *left)
        if change.action in (*_GONE, *_NEW)
        and (name := _unique_name(change, worlds.old)) is not None
    ]


def _taken_name(
    change: Change, gone: Sequence[tuple[Change, JsonObject]], new: World
) -> Iterator[str]:
    if change.action not in ("added", *_NEW):
        return
    name = _unique_name(change, new)
    for other, taken in gone:
        if other.ids[-1] == change.ids[-1] or other.type != change.type:
            continue
        if name is not None and taken == name:
            verb = "stays" if other.action == "kept" else "goes only after this one is made"
            yield f"{other.ids[-1]} is {_name_text(name)} already, and {verb}"


def _protected_by_itself(key: Key, change: Change, old: World) -> Iterator[str]:
    if change.action not in ("deleted", "replaced"):
        return
    if old.properties(key).get("DeletionProtection") == "true":
        yield "its deletion protection is on"


def _blocked_exports(changes: Mapping[Key, Change], worlds: Worlds) -> Mapping[Key, Sequence[str]]:
    """Return the failures of replaced resources whose exports other stacks still import."""
    failures: dict[Key, list[str]] = {}
    for name, (stack, value) in worlds.new.exports.items():
        users = [user for user in worlds.old.importers.get(name, ()) if user != stack]
        for reference in references(worlds.new.value(stack, value)) if users else ():
            change = changes.get(reference.resource)
            if change is not None and change.action == "replaced":
                text = f"{', '.join(users)} imports what it exports, which cannot change meanwhile"
                reasons = failures.setdefault(reference.resource, [])
                if text not in reasons:
                    reasons.append(text)
    return failures


def _name_text(name: JsonObject) -> str:
    return ", ".join(f"{path} {shown(value)}" for path, value in name.items())
