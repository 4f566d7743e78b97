"""Vocabulary of structural schemas: the parts of an OpenAPI v3 schema of a CRD.

Every object with named fields keeps the fields it does not name, so that nothing of a user's object
is ever pruned.

Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#specifying-a-structural-schema
"""

from collections.abc import Mapping, Sequence

from ultrascale.documents import Json

Schema = dict[str, Json]

_KEEP = "x-kubernetes-preserve-unknown-fields"
_DNS_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
# The quantities that Kubernetes accepts, as the API server writes them into CRDs.
_QUANTITY = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)

DNS_LABEL_PATTERN = f"^{_DNS_LABEL}$"
DNS_NAME_PATTERN = rf"^{_DNS_LABEL}(\.{_DNS_LABEL})*$"


def string(
    *,
    default: str | None = None,
    enum: Sequence[str] | None = None,
    pattern: str | None = None,
    min_length: int | None = None,
    max_length: int | None = None,
) -> Schema:
    """Return the schema of a string; lengths are in characters."""
    return _without_none(
        type="string",
        default=default,
        enum=None if enum is None else list(enum),
        pattern=pattern,
        minLength=min_length,
        maxLength=max_length,
    )


def integer(
    *,
    minimum: int | None = None,
    maximum: int | None = None,
    default: int | None = None,
    bits: int | None = 32,
) -> Schema:
    """Return the schema of an integer of 32 or 64 ``bits``; None leaves the width open."""
    return _without_none(
        type="integer",
        format=None if bits is None else f"int{bits}",
        minimum=minimum,
        maximum=maximum,
        default=default,
    )


def boolean(*, default: bool | None = None) -> Schema:
    """Return the schema of a boolean."""
    return _without_none(type="boolean", default=default)


def quantity() -> Schema:
    """Return the schema of a resource quantity, such as ``8`` or ``512Gi``."""
    return {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": _QUANTITY,
        "x-kubernetes-int-or-string": True,
    }


def array(items: Schema, *, min_items: int | None = None, atomic: bool = False) -> Schema:
    """Return the schema of a list.

    Args:
        items: Schema of each element.
        min_items: Fewest elements allowed.
        atomic: Whether server-side apply replaces the list as a whole.
    """
    list_type = "atomic" if atomic else None
    return _without_none(
        type="array", items=items, minItems=min_items, **{"x-kubernetes-list-type": list_type}
    )


def mapping(values: Schema) -> Schema:
    """Return the schema of an object whose keys are free and whose values are alike."""
    return {"type": "object", "additionalProperties": values}


def obj(
    fields: Mapping[str, Schema],
    *,
    required: Sequence[str] = (),
    atomic: bool = False,
    rules: Mapping[str, str] | None = None,
) -> Schema:
    """Return the schema of an object that keeps the fields it does not name.

    Args:
        fields: Schema of each named field.
        required: Fields that must be there.
        atomic: Whether server-side apply replaces the object as a whole.
        rules: CEL expressions over ``self`` that must hold, by the message for when they do not.
    """
    schema: Schema = {"type": "object", _KEEP: True, "properties": dict(fields)}
    if required:
        schema["required"] = list(required)
    if atomic:
        schema["x-kubernetes-map-type"] = "atomic"
    if rules:
        schema["x-kubernetes-validations"] = [
            {"rule": rule, "message": message} for message, rule in rules.items()
        ]
    return schema


def anything() -> Schema:
    """Return the schema of an object that is kept whole and not looked into."""
    return {"type": "object", _KEEP: True}


def resource(spec: Schema, *, required: bool = False) -> Schema:
    """Return the schema of a kind with ``spec`` and a ``status`` that its controller owns."""
    return obj({"spec": spec, "status": anything()}, required=["spec"] if required else [])


def label_selector() -> Schema:
    """Return the schema of a Kubernetes label selector."""
    requirement = obj(
        {"key": string(), "operator": string(), "values": array(string(), atomic=True)},
        required=["key", "operator"],
    )
    return obj(
        {"matchLabels": mapping(string()), "matchExpressions": array(requirement, atomic=True)},
        atomic=True,
    )


def _without_none(**keys: Json) -> Schema:
    return {key: value for key, value in keys.items() if value is not None}
