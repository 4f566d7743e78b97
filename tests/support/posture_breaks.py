"""Changes that open a hole in a real cluster, which the rules of the posture must notice."""

import copy
from dataclasses import dataclass, replace
from typing import Any, cast

import yaml

from tests.support.folders import DATA
from tests.support.posture import Cluster


@dataclass(frozen=True)
class Break:
    """A change of one resource or object.

    Attributes:
        rule: The rule that must notice it.
        cluster: Fixture of the cluster that is changed.
        kind: Type of the resource or kind of the object, of which the first is changed; after a
            slash, the beginning of its logical id or its name.
        path: Where in it.
        value: What stands there then; None takes the key away.
        says: Part of the finding.
    """

    rule: str
    cluster: str
    kind: str
    path: tuple[str | int, ...]
    value: object
    says: str


def applied(cluster: Cluster, change: Break) -> Cluster:
    """Return a copy of ``cluster`` with ``change`` in it.

    Raises:
        LookupError: It has nothing that could be changed so.
    """
    kind, _, name = change.kind.partition("/")
    for stack, template in cluster.templates.items():
        for logical_id, body in template["Resources"].items():
            if body["Type"] == kind and logical_id.startswith(name):
                bodies = {**template["Resources"], logical_id: _changed(body, change)}
                changed = {**template, "Resources": bodies}
                return replace(cluster, templates={**cluster.templates, stack: changed})
    for index, document in enumerate(cluster.documents):
        if document["kind"] == kind and document["metadata"]["name"].startswith(name):
            documents = [*cluster.documents]
            documents[index] = _changed(document, change)
            return replace(cluster, documents=documents)
    raise LookupError(change.kind)


def _changed(body: Any, change: Break) -> Any:
    changed = copy.deepcopy(body)
    parent = changed
    *parts, last = change.path
    for part in parts:
        parent = parent[part] if isinstance(part, int) else parent.setdefault(part, {})
    if change.value is None:
        del parent[last]
    else:
        parent[last] = change.value
    return changed


def _path(text: str) -> tuple[str | int, ...]:
    return tuple(int(part) if part.isdigit() else part for part in text.split())


def _read() -> tuple[Break, ...]:
    text = (DATA / "posture_breaks.yaml").read_text()
    by_rule = cast("dict[str, list[dict[str, Any]]]", yaml.safe_load(text))
    return tuple(
        Break(rule, each["in"], each["kind"], _path(each["at"]), each["value"], each["says"])
        for rule, entries in by_rule.items()
        for each in entries
    )


BREAKS = _read()
