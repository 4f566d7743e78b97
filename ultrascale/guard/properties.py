"""The effect of each changed property: update, replacement or refusal by CloudFormation."""

import re
from collections.abc import Iterator, Mapping

from ultrascale.catalog import create_only
from ultrascale.catalog.create_only import UpdateBehavior
from ultrascale.documents import Json, JsonObject, mapping
from ultrascale.guard.model import Effect, PropertyChange
from ultrascale.guard.templates import UPDATE_POLICY, is_atom, shown_change

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
    return resource_type.startswith(create_only.CUSTOM)


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
    if not is_custom(resource_type) and create_only.lookup_update_behavior(resource_type) is None:
        for path, before, after in _differences(old, new):
            yield _change(path, before, after, "may replace", _UNKNOWN)
        return
    grows = create_only.update_rules().only_grows.get(resource_type, ())
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
    rules = create_only.update_rules()
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
    behavior = create_only.lookup_update_behavior(resource_type)
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
