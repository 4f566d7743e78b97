"""Objects whose change the API server refuses, so that the deployment rolls back."""

import re
from collections.abc import Iterator

from ultrascale.catalog.immutable_fields import Immutable, lookup_immutable_fields
from ultrascale.documents import Json, JsonObject, mapping, objects, text
from ultrascale.guard.model import Change, PropertyChange
from ultrascale.guard.objects import KubernetesObject, Objects
from ultrascale.guard.properties import at
from ultrascale.guard.templates import shown_change

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
# Source: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)([KMGTPE]i?|k)?")
_POWERS = {"K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}


def refused_objects(applied: tuple[Objects, Objects]) -> Iterator[Change]:
    """Yield the objects that stay under their names while immutable fields change.

    Args:
        applied: The objects in the cluster, of both sides.
    """
    old, new = applied
    for before in old.by_id.values():
        after = new.by_id.get(before.id)
        if after is None or after.body == before.body:
            continue
        refused = tuple(_refused(before, after))
        if refused:
            stack, logical_id = after.holder
            paths = ", ".join(changed.path for changed in refused)
            yield Change(
                stack=stack,
                logical_id=logical_id,
                type=f"Kubernetes::{after.kind}",
                name=after.whole_name,
                action="updated",
                properties=refused,
                fails=f"Kubernetes refuses another {paths} of a {after.kind} that is there",
                instead=_INSTEAD.get(after.kind, _RENAME),
            )


def _refused(before: KubernetesObject, after: KubernetesObject) -> Iterator[PropertyChange]:
    api_version = text(after.body, "apiVersion")
    for field in lookup_immutable_fields(after.kind, api_version):
        for path in _paths(field, before.body, after.body):
            old, new = at(before.body, path), at(after.body, path)
            if _differs(field, old, new):
                yield _change(path, old, new, _WHY)
    if after.kind == _DEFINITION:
        old, new = (_versions(side) for side in (before, after))
        if old - new:
            yield _change("spec/versions", sorted(old), sorted(new), _STORED)


def _paths(field: Immutable, before: JsonObject, after: JsonObject) -> Iterator[str]:
    if field.only_if and at(before, field.only_if) is not True:
        return
    if field.if_set and at(before, field.if_set) is None:
        return
    if not field.but:
        yield field.path
        return
    for key in {**mapping(at(before, field.path)), **mapping(at(after, field.path))}:
        if key not in field.but:
            yield f"{field.path}/{key}"


def _differs(field: Immutable, old: Json, new: Json) -> bool:
    if field.presence:
        return (old is None) != (new is None)
    if field.grows:
        before, after = _bytes(old), _bytes(new)
        return before is not None and after is not None and after < before
    return old != new


def _bytes(quantity: Json) -> float | None:
    match = _QUANTITY.fullmatch(str(quantity))
    if match is None:
        return None
    number, unit = match[1], match[2] or ""
    base = 1024 if unit.endswith("i") else 1000
    return float(number) * base ** _POWERS.get(unit[:1].upper(), 0)


def _versions(definition: KubernetesObject) -> set[str]:
    return {text(version, "name") for version in objects(definition.spec, "versions")}


def _change(path: str, old: Json, new: Json, why: str) -> PropertyChange:
    before, after = shown_change(old, new)
    return PropertyChange(path=path, old=before, new=after, effect="is refused", why=why)
