"""Kubernetes objects that stacks put into the cluster.

Source: https://docs.aws.amazon.com/cdk/api/v2/docs/aws-cdk-lib.aws_eks_v2-readme.html (manifests)
"""

import json
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from ultrascale.documents import Json, JsonObject, mapping, parse_json, text
from ultrascale.frozen import Frozen
from ultrascale.guard.model import Change
from ultrascale.guard.templates import Key, World, text_of
from ultrascale.plan import names

MANIFEST = "Custom::AWSCDK-EKS-KubernetesResource"
PATCH = "Custom::AWSCDK-EKS-KubernetesPatch"
NAMESPACE = "Namespace"
NODE_POOL = "NodePool"
NODE_CLASSES = ("EC2NodeClass", "NodeClass")
RESERVED = frozenset({"odcr", "capacity-block", "training-plan"})
"""Purchase options that reserve capacity."""

_NODE_POOLS = "nodepools.karpenter.sh/"

Id = tuple[str, str, str]


class KubernetesObject(Frozen):
    """An object that a stack puts into the cluster."""

    kind: str  # Its kind
    namespace: str  # Its namespace; empty where it has none
    name: str  # Its name
    body: JsonObject  # The whole object
    holder: Key  # The custom resource that applies it

    @property
    def id(self) -> Id:
        """Kind, namespace and name; unique in the cluster."""
        return self.kind, self.namespace, self.name

    @property
    def whole_name(self) -> str:
        """Namespace and name; the name alone may exist in several namespaces."""
        return "/".join(filter(None, (self.namespace, self.name)))

    @property
    def spec(self) -> JsonObject:
        """Its ``spec``."""
        return mapping(self.body, "spec")

    @property
    def pod(self) -> JsonObject:
        """Pod specification of the object; empty if it makes no pods."""
        return mapping(self.body, "spec", "template", "spec")

    @property
    def labels(self) -> JsonObject:
        """Labels of the nodes of a NodePool."""
        return mapping(self.body, "spec", "template", "metadata", "labels")


class Objects(Frozen):
    """All Kubernetes objects of a cluster."""

    by_id: Mapping[Id, KubernetesObject]  # The objects; patches are applied to them
    unread: tuple[str, ...]  # Custom resources whose objects could not be read

    def of_kind(self, *kinds: str) -> Iterator[KubernetesObject]:
        """Yield the objects of some kinds."""
        yield from (applied for applied in self.by_id.values() if applied.kind in kinds)


def read_objects(world: World) -> Objects:
    """Return the objects that the stacks of ``world`` put into the cluster."""
    by_id: dict[Id, KubernetesObject] = {}
    unread: list[str] = []
    for key in _resources_of_type(world, MANIFEST):
        objects = _objects(text_of(world.properties(key).get("Manifest", "[]")), key)
        if objects is None:
            unread.append("/".join(key))
        for applied in objects or ():
            by_id[applied.id] = applied
    for key in _resources_of_type(world, PATCH):
        if not _patch(by_id, world.properties(key)):
            unread.append("/".join(key))
    return Objects(by_id=by_id, unread=tuple(unread))


def is_reserved(applied: KubernetesObject) -> bool:
    """Return whether an object is a NodePool of reserved capacity."""
    labels = applied.labels
    return applied.kind == NODE_POOL and (
        labels.get(names.ROLE_LABEL) == "reserved" or labels.get(names.CAPACITY_LABEL) in RESERVED
    )


def _resources_of_type(world: World, resource_type: str) -> Iterator[Key]:
    for stack in world.templates:
        for logical_id, body in world.resources(stack).items():
            if body["Type"] == resource_type:
                yield stack, logical_id


def _objects(manifest: str, holder: Key) -> Sequence[KubernetesObject] | None:
    """Return the objects of a manifest; None if a document has no kind or no name."""
    documents = _list(manifest)
    if documents is None:
        return None
    objects = [
        KubernetesObject(
            kind=text(document, "kind"),
            namespace=text(document, "metadata", "namespace"),
            name=text(document, "metadata", "name"),
            body=mapping(document),
            holder=holder,
        )
        for document in documents
    ]
    return objects if all(applied.kind and applied.name for applied in objects) else None


def _patch(by_id: dict[Id, KubernetesObject], patch: JsonObject) -> bool:
    """Apply a patch to its NodePool: a static NodePool is made by a seed and a patch.

    Returns:
        Whether the patch could be read. Our patches only add fields, none within a list.
    """
    name = text(patch, "ResourceName").removeprefix(_NODE_POOLS)
    pool = by_id.get((NODE_POOL, "", name))
    if pool is None or patch.get("PatchType") != "json":
        return True
    operations = _list(text_of(patch.get("ApplyPatchJson", "")))
    if operations is None:
        return False
    body: Json = pool.body
    for operation in operations:
        if text(operation, "op") != "add":
            return False
        path = text(operation, "path").strip("/").split("/")
        body = _set_value(body, path, mapping(operation).get("value"))
    if not isinstance(body, Mapping):
        return False
    by_id[pool.id] = replace(pool, body=body)
    return True


def _set_value(body: Json, path: Sequence[str], value: Json) -> Json:
    """Return ``body`` with a value at a path; None if a step of the path is no object."""
    if not path:
        return value
    if not isinstance(body, Mapping):
        return None
    first, *rest = path
    inner = body.get(first, {})
    if rest and not isinstance(inner, Mapping):
        return None
    changed = _set_value(inner, rest, value)
    return None if rest and changed is None else {**body, first: changed}


def _list(document: str) -> Sequence[Json] | None:
    try:
        value: Json = parse_json(document)
    except json.JSONDecodeError:
        return None
    return value if isinstance(value, list) else None


def updated(after: KubernetesObject) -> Change:
    """Return the update of an object, which is ``after`` then."""
    stack, logical_id = after.holder
    return Change(
        stack=stack,
        logical_id=logical_id,
        type=f"Kubernetes::{after.kind}",
        name=after.whole_name,
        action="updated",
    )
