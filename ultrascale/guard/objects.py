"""Objects that stacks put into the cluster, and what becomes of them.

Source: https://docs.aws.amazon.com/cdk/api/v2/docs/aws-cdk-lib.aws_eks_v2-readme.html (manifests)
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, cast

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


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesObject:
    """An object that a stack puts into the cluster.

    Attributes:
        kind: Its kind.
        namespace: Its namespace; empty where it has none.
        name: Its name.
        body: All of it.
        holder: The custom resource that applies it.
    """

    kind: str
    namespace: str
    name: str
    body: Mapping[str, Any]
    holder: Key

    @property
    def id(self) -> Id:
        """What no two objects share."""
        return self.kind, self.namespace, self.name

    @property
    def spec(self) -> Mapping[str, Any]:
        """Its ``spec``."""
        return self.body.get("spec", {})

    @property
    def labels(self) -> Mapping[str, str]:
        """Labels of the nodes, of a NodePool."""
        return self.spec.get("template", {}).get("metadata", {}).get("labels", {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Objects:
    """Every object of a cluster.

    Attributes:
        by_id: The objects; patches are applied to them.
        unread: Custom resources whose objects nobody can tell.
    """

    by_id: Mapping[Id, KubernetesObject]
    unread: tuple[str, ...]

    def of_kind(self, *kinds: str) -> Iterator[KubernetesObject]:
        """Yield the objects of some kinds."""
        yield from (each for each in self.by_id.values() if each.kind in kinds)


def read_objects(world: World) -> Objects:
    """Return the objects that the stacks of ``world`` put into the cluster."""
    found: dict[Id, KubernetesObject] = {}
    unread: list[str] = []
    for key in _of_type(world, MANIFEST):
        objects = _objects(text_of(world.properties(key).get("Manifest", "[]")), key)
        if objects is None:
            unread.append("/".join(key))
        for each in objects or ():
            found[each.id] = each
    for key in _of_type(world, PATCH):
        if not _patch(found, world.properties(key)):
            unread.append("/".join(key))
    return Objects(by_id=found, unread=tuple(unread))


def is_reserved(found: KubernetesObject) -> bool:
    """Return whether an object is the NodePool of capacity that is reserved."""
    labels = found.labels
    return found.kind == NODE_POOL and (
        labels.get(names.ROLE_LABEL) == "reserved" or labels.get(names.CAPACITY_LABEL) in RESERVED
    )


def _of_type(world: World, resource_type: str) -> Iterator[Key]:
    for stack in world.templates:
        for logical_id, body in world.resources(stack).items():
            if body["Type"] == resource_type:
                yield stack, logical_id


def _objects(manifest: str, holder: Key) -> Sequence[KubernetesObject] | None:
    """Return the objects of a manifest; None where it has what is no object with a name."""
    documents = _list(manifest)
    if documents is None:
        return None
    found: list[KubernetesObject] = []
    for document in documents:
        body = _mapping(document)
        metadata = _mapping(body.get("metadata"))
        if "kind" not in body or "name" not in metadata:
            return None
        found.append(
            KubernetesObject(
                kind=body["kind"],
                namespace=metadata.get("namespace", ""),
                name=metadata["name"],
                body=body,
                holder=holder,
            )
        )
    return found


def _patch(found: dict[Id, KubernetesObject], patch: Mapping[str, Any]) -> bool:
    """Apply a patch to the NodePool that it names: static ones are made by a seed and a patch.

    Returns:
        Whether it could be read. Ours add fields, none within a list.
    """
    name = str(patch.get("ResourceName", "")).removeprefix(_NODE_POOLS)
    pool = found.get((NODE_POOL, "", name))
    if pool is None or patch.get("PatchType") != "json":
        return True
    operations = _list(text_of(patch.get("ApplyPatchJson", "")))
    if operations is None:
        return False
    body: dict[str, Any] = deepcopy(dict(pool.body))
    for operation in cast("Sequence[Mapping[str, Any]]", operations):
        *parents, last = operation["path"].strip("/").split("/")
        place = body
        for part in parents:
            inner: object = place.setdefault(part, {})
            if not isinstance(inner, dict):
                return False
            place = cast("dict[str, Any]", inner)
        if operation["op"] != "add":
            return False
        place[last] = operation["value"]
    found[pool.id] = replace(pool, body=body)
    return True


def _list(text: str) -> Sequence[object] | None:
    try:
        value: object = json.loads(text)
    except json.JSONDecodeError:
        return None
    return cast("Sequence[object]", value) if isinstance(value, list) else None


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}
