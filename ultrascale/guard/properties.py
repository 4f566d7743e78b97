"""What CloudFormation does for each property of a resource that changes."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from ultrascale.catalog import create_only
from ultrascale.catalog.create_only import UpdateBehavior
from ultrascale.guard.model import Effect, PropertyChange
from ultrascale.guard.templates import UPDATE_POLICY, is_atom, shown

_GROUP = "AWS::AutoScaling::AutoScalingGroup"
_REPLACING = "AutoScalingReplacingUpdate"
_SERVICE_TOKEN = "ServiceToken"
# Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-cloudformation-customresource.html
_TOKEN = "CloudFormation never lets another function answer for a custom resource"
_UNKNOWN = "the table of create-only properties does not have the type"
_DOCUMENTED = "the page of the type says so, its schema does not"
_SHRINKS = "it only grows"

Values = Mapping[str, Any]


def is_custom(resource_type: str) -> bool:
    """Return whether a function answers for the resource, and not CloudFormation."""
    return resource_type.startswith(create_only.CUSTOM)


def property_changes(resource_type: str, old: Values, new: Values) -> Iterator[PropertyChange]:
    """Yield what changes between two sets of properties, as `World.value` returns them.

    Args:
        resource_type: Their type.
        old: Values before.
        new: Values after.
    """
    covered: list[str] = []
    for path, effect, why in create_only_paths(resource_type, new):
        before, after = at(old, path), at(new, path)
        if before == after or any(path.startswith(f"{each}/") for each in covered):
            continue
        covered.append(path)
        yield _change(path, before, after, effect, why)
    if not is_custom(resource_type) and create_only.lookup_update_behavior(resource_type) is None:
        for path, before, after in _differences(old, new):
            yield _change(path, before, after, "may replace", _UNKNOWN)
        return
    grows = create_only.ONLY_GROWS.get(resource_type, ())
    for path, before, after in _differences(old, new):
        if any(path == each or path.startswith(f"{each}/") for each in covered):
            continue
        if path in grows and _is_less(after, before):
            yield _change(path, before, after, "is refused", _SHRINKS)
        else:
            yield _change(path, before, after, "updates", "")


def create_only_paths(resource_type: str, new: Values) -> Iterator[tuple[str, Effect, str]]:
    """Yield the properties of a type for which it may be replaced, the outermost first.

    Args:
        resource_type: The type.
        new: Properties after the change.
    """
    if is_custom(resource_type):
        yield _SERVICE_TOKEN, "is refused", _TOKEN
        return
    behavior = create_only.lookup_update_behavior(resource_type)
    if behavior is None:
        return
    for path in behavior.create_only:
        yield path, "replaces", ""
    yield from _conditional(resource_type, behavior, new)
    for path in behavior.documented:
        yield path, "may replace", _DOCUMENTED


def _conditional(
    resource_type: str, behavior: UpdateBehavior, new: Values
) -> Iterator[tuple[str, Effect, str]]:
    # Without that policy a group stays, and only what it launches from then on is another.
    # Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-updatepolicy.html
    if resource_type == _GROUP and _REPLACING not in new.get(UPDATE_POLICY, {}):
        return
    for path in behavior.conditional:
        yield path, "may replace", ""


def at(values: object, path: str) -> object:
    """Return what stands at a path; None where nothing does, a list below each `*`."""
    found = values
    parts = path.split("/")
    for index, part in enumerate(parts):
        if part == "*" and isinstance(found, list):
            rest = "/".join(parts[index + 1 :])
            return [at(each, rest) for each in cast("list[object]", found)]
        if not isinstance(found, dict):
            # An intrinsic function may give it.
            return found
        if is_atom(cast("object", found)):
            return cast("object", found)
        found = cast("dict[str, object]", found).get(part)
        if found is None:
            return None
    return found


def leaves(values: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, object]]:
    """Yield every value within ``values`` that has no names inside, with its path; lists whole."""
    if is_atom(values) or isinstance(values, list):
        yield "/".join(path), values
        return
    for key, value in cast("Mapping[str, object]", values).items():
        yield from leaves(value, (*path, key))


def _differences(
    old: object, new: object, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, object, object]]:
    if old == new:
        return
    before, after = _parts(old), _parts(new)
    # Lists of other lengths are told whole: nobody knows which of their items is which.
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


def _parts(value: object) -> Mapping[str, object] | None:
    """Return the parts of an object or a list; None where a value has none."""
    if is_atom(value):
        return None
    if isinstance(value, list):
        return {str(index): each for index, each in enumerate(cast("list[object]", value))}
    return cast("Mapping[str, object]", value)


def _change(path: str, old: object, new: object, effect: Effect, why: str) -> PropertyChange:
    return PropertyChange(path=path, old=shown(old), new=shown(new), effect=effect, why=why)


def _is_less(after: object, before: object) -> bool:
    try:
        return float(str(after)) < float(str(before))
    except ValueError:
        # A number that is only known when it is deployed.
        return False
