"""The effect of each changed property, and its spread through references."""

import re
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from ultrascale.catalog import cloudformation
from ultrascale.catalog.cloudformation import UpdateBehavior
from ultrascale.documents import Json, JsonObject, mapping
from ultrascale.frozen import Frozen
from ultrascale.guard.model import Action, Change, Effect, PropertyChange
from ultrascale.guard.templates import (
    UPDATE_POLICY,
    Key,
    Reference,
    World,
    is_atom,
    path_name,
    references,
    shown,
    shown_change,
)

# --- The effect of each changed property: update, replacement or refusal by CloudFormation --------


_GROUP = "AWS::AutoScaling::AutoScalingGroup"
_REPLACING = "AutoScalingReplacingUpdate"
_SERVICE_TOKEN = "ServiceToken"
# Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-cloudformation-customresource.html
_TOKEN = "CloudFormation never lets another function answer for a custom resource"
_UNKNOWN = "the table of create-only properties does not have the type"
_DOCUMENTED = "the page of the type says so, its schema does not"
_SHRINKS = "it only grows"
_NUMBER = re.compile(r"\d+")


def is_custom(resource_type: str) -> bool:
    """Return whether a Lambda function, not CloudFormation, makes the resource."""
    return resource_type.startswith(cloudformation.CUSTOM)


def property_changes(
    resource_type: str, old: JsonObject, new: JsonObject
) -> Iterator[PropertyChange]:
    """Yield the changes between two sets of properties in the form of `World.value`.

    Args:
        resource_type: Their type.
        old: Values before.
        new: Values after.
    """
    covered: list[str] = []
    for path, effect, why in create_only_paths(resource_type, new):
        before, after = value_at(old, path), value_at(new, path)
        if before == after or any(path.startswith(f"{outer}/") for outer in covered):
            continue
        covered.append(path)
        yield _change(path, before, after, effect, why)
    if (
        not is_custom(resource_type)
        and cloudformation.lookup_update_behavior(resource_type) is None
    ):
        for path, before, after in _differences(old, new):
            yield _change(path, before, after, "may replace", _UNKNOWN)
        return
    grows = cloudformation.update_rules().only_grows.get(resource_type, ())
    for path, before, after in _differences(old, new):
        if any(path == outer or path.startswith(f"{outer}/") for outer in covered):
            continue
        refused = _SHRINKS if path in grows and _is_less(after, before) else ""
        refused = refused or _refused_step(resource_type, path, before, after, new)
        if refused:
            yield _change(path, before, after, "is refused", refused)
        else:
            yield _change(path, before, after, "updates", "")


def _refused_step(resource_type: str, path: str, before: Json, after: Json, new: JsonObject) -> str:
    """Return why the service refuses a change of a value; empty if the service accepts it."""
    rules = cloudformation.update_rules()
    old, wanted = version_numbers(before), version_numbers(after)
    shared = min(len(old), len(wanted))
    why = rules.only_newer.get(resource_type, {}).get(path, "")
    if why and wanted[:shared] < old[:shared]:
        return why
    if path == rules.one_minor_at_once.get(resource_type) and shared > 1:
        steps = wanted[1] - old[1]
        if steps > 1:
            return f"the service raises it by one minor at a time, and these are {steps}"
    version, allowing = rules.major_only_if.get(resource_type, ("", ""))
    if path == version and shared and wanted[0] > old[0] and new.get(allowing) != "true":
        return f"the service refuses another major version without {allowing}"
    order = rules.one_way.get(resource_type, {}).get(path, ())
    if before in order and after in order and order.index(after) < order.index(before):
        return "the service takes no way back from it"
    return ""


def version_numbers(value: Json) -> tuple[int, ...]:
    """Return the numbers of a version; empty if only the deployed stack knows the version."""
    return tuple(map(int, _NUMBER.findall(value))) if isinstance(value, str) else ()


def create_only_paths(resource_type: str, new: JsonObject) -> Iterator[tuple[str, Effect, str]]:
    """Yield the properties of a type that may cause a replacement, the outermost first.

    Args:
        resource_type: The type.
        new: Properties after the change.
    """
    if is_custom(resource_type):
        yield _SERVICE_TOKEN, "is refused", _TOKEN
        return
    behavior = cloudformation.lookup_update_behavior(resource_type)
    if behavior is None:
        return
    for path in behavior.create_only:
        yield path, "replaces", ""
    yield from _conditional_paths(resource_type, behavior, new)
    for path in behavior.documented:
        yield path, "may replace", _DOCUMENTED


def _conditional_paths(
    resource_type: str, behavior: UpdateBehavior, new: JsonObject
) -> Iterator[tuple[str, Effect, str]]:
    # Without that policy the group stays, and the change applies to instances launched later.
    # Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-updatepolicy.html
    if resource_type == _GROUP and _REPLACING not in mapping(new, UPDATE_POLICY):
        return
    for path in behavior.conditional:
        yield path, "may replace", ""


def value_at(values: Json, path: str) -> Json:
    """Return the value at a path, a list below each ``*``; None without a value."""
    value = values
    parts = path.split("/")
    for index, part in enumerate(parts):
        if part == "*" and isinstance(value, list):
            rest = "/".join(parts[index + 1 :])
            return [value_at(item, rest) for item in value]
        if not isinstance(value, Mapping) or is_atom(value):
            # An intrinsic function may yield the part.
            return value
        value = value.get(part)
        if value is None:
            return None
    return value


def leaves(values: Json, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Json]]:
    """Yield each value within ``values`` that is no object, with its path; a list is one value."""
    if isinstance(values, Mapping) and not is_atom(values):
        for key, value in values.items():
            yield from leaves(value, (*path, key))
    else:
        yield "/".join(path), values


def _differences(
    old: Json, new: Json, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, Json, Json]]:
    if old == new:
        return
    before, after = _parts(old), _parts(new)
    # Lists of different lengths count as one change: their items cannot be matched.
    if (
        before is not None
        and after is not None
        and isinstance(old, list) == isinstance(new, list)
        and (len(before) == len(after) or not isinstance(old, list))
    ):
        for key in {**before, **after}:
            yield from _differences(before.get(key), after.get(key), (*path, key))
        return
    yield "/".join(path), old, new


def _parts(value: Json) -> JsonObject | None:
    """Return the parts of an object or a list; None if the value is neither."""
    if isinstance(value, list):
        return {str(index): item for index, item in enumerate(value)}
    return value if isinstance(value, Mapping) and not is_atom(value) else None


def _change(path: str, old: Json, new: Json, effect: Effect, why: str) -> PropertyChange:
    before, after = shown_change(old, new)
    return PropertyChange(path=path, old=before, new=after, effect=effect, why=why)


def _is_less(after: Json, before: Json) -> bool:
    try:
        return float(str(after)) < float(str(before))
    except ValueError:
        # Only the deployed stack knows the number.
        return False


# --- Replacement spreads through references: a resource that refers to a replaced one changes too


# Last words of the reason for a change that another resource causes.
_CAUSED = "which it refers to"


class Worlds(Frozen):
    """The two sides of a comparison."""

    old: World  # The deployed stacks
    new: World  # The stacks that would be deployed

    def standing(self) -> Iterator[Key]:
        """Yield every resource that exists before and after."""
        for stack in self.new.templates:
            if stack in self.old.templates:
                old = self.old.resources(stack)
                yield from (
                    (stack, logical_id)
                    for logical_id in self.new.resources(stack)
                    if logical_id in old
                )


def change_of(key: Key, world: World, action: Action) -> Change:
    """Return a change of a resource with nothing but its action."""
    stack, logical_id = key
    body = world.resources(stack)[logical_id]
    name = path_name(logical_id, body)
    return Change(stack=stack, logical_id=logical_id, type=body["Type"], name=name, action=action)


def action_of(properties: tuple[PropertyChange, ...]) -> Action:
    """Return the action on a resource with these changes of its properties."""
    effects = {changed.effect for changed in properties}
    if "replaces" in effects:
        return "replaced"
    return "may be replaced" if "may replace" in effects else "updated"


def is_caused(change: PropertyChange) -> bool:
    """Return whether a property changes only because a resource that it refers to changes."""
    return change.why.endswith(_CAUSED)


def propagate(changes: Mapping[Key, Change], worlds: Worlds) -> Mapping[Key, Change]:
    """Return ``changes`` with the changes that spread through references.

    A replaced resource has a new id and new attributes. Another resource, in any stack, that reads
    them in a create-only property is replaced as well; one that reads them in another property is
    updated, as a launch template is for a new security group.
    """
    changed = dict(changes)
    readers = _readers(worlds)
    waiting = set(changed)
    while waiting:
        concerned = {reader for key in waiting for reader in readers.get(key, ())}
        waiting = set[Key]()
        for key in concerned:
            change = _affected_change(key, changed, worlds)
            if change.properties and change != changed.get(key):
                changed[key] = change
                waiting.add(key)
    return changed


def _readers(worlds: Worlds) -> Mapping[Key, set[Key]]:
    """Return the resources that refer to each resource."""
    readers: dict[Key, set[Key]] = {}
    for key in worlds.standing():
        for reference in references(worlds.new.properties(key)):
            readers.setdefault(reference.resource, set()).add(key)
    return readers


def _affected_change(key: Key, changes: Mapping[Key, Change], worlds: Worlds) -> Change:
    change = changes.get(key) or change_of(key, worlds.new, "updated")
    own = tuple(changed for changed in change.properties if not is_caused(changed))
    values = worlds.new.properties(key)
    more = tuple(_caused_changes(change.type, values, {changed.path for changed in own}, changes))
    told = {changed.path for changed in (*own, *more)}
    properties = (*own, *more, *_followed_changes(values, told, changes))
    return replace(change, action=action_of(properties), properties=properties)


def _caused_changes(
    resource_type: str, values: JsonObject, own: set[str], changes: Mapping[Key, Change]
) -> Iterator[PropertyChange]:
    for path, effect, _ in create_only_paths(resource_type, values):
        value = value_at(values, path)
        causes = [
            (cause, reference)
            for reference in references(value)
            if (cause := _cause(reference, changes))
        ]
        if path in own or not causes:
            continue
        certain = any(cause == "replaced" for cause, _ in causes)
        cause, reference = min(causes, key=lambda pair: pair[0] != "replaced")
        yield PropertyChange(
            path=path,
            old=shown(value),
            new="another",
            effect=effect if certain or effect == "is refused" else "may replace",
            why=f"{reference.logical_id} is {cause}, {_CAUSED}",
        )


def _followed_changes(
    values: JsonObject, told: set[str], changes: Mapping[Key, Change]
) -> Iterator[PropertyChange]:
    """Yield the properties that change only because a resource that they refer to changes."""
    for path, value in leaves(values):
        parts = path.split("/")
        if any("/".join(parts[: end + 1]) in told for end in range(len(parts))):
            continue
        for reference in references(value):
            cause = _cause(reference, changes)
            if cause is not None:
                yield PropertyChange(
                    path=path,
                    old=shown(value),
                    new="another",
                    effect="updates",
                    why=f"{reference.logical_id} is {cause}, {_CAUSED}",
                )
                break


def _cause(reference: Reference, changes: Mapping[Key, Change]) -> Action | None:
    """Return the action on a reference's resource; None if the reference stays equal."""
    change = changes.get(reference.resource)
    if change is None:
        return None
    if change.action in ("replaced", "may be replaced"):
        return change.action
    if change.action != "updated" or not change.properties:
        return None
    if is_custom(change.type):
        return "updated" if reference.attribute else None
    changing = cloudformation.update_rules().changing_attributes.get(change.type, ())
    return "updated" if reference.attribute in changing else None
