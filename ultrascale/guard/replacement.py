"""Replacement spreads through references: a resource that refers to a replaced one changes too."""

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from ultrascale.catalog import create_only
from ultrascale.documents import JsonObject
from ultrascale.frozen import Frozen
from ultrascale.guard.model import Action, Change, PropertyChange
from ultrascale.guard.properties import create_only_paths, is_custom, leaves, value_at
from ultrascale.guard.templates import Key, Reference, World, path_name, references, shown

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
    changing = create_only.update_rules().changing_attributes.get(change.type, ())
    return "updated" if reference.attribute in changing else None
