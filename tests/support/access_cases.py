"""Requests of people, as data: rights by level of access, and objects that policies judge."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import cache
from typing import Any

import yaml

from tests.support.folders import DATA
from tests.support.rbac import Access
from ultrascale.jobs.patches import merged

Document = dict[str, Any]
LEVELS = ("view", "edit", "admin")


@cache
def _cases() -> Document:
    return yaml.load((DATA / "access-cases.yaml").read_text(), yaml.CSafeLoader)


def clusters() -> Mapping[str, Sequence[str]]:
    """Return the files of ``clusters/`` with cases, and the namespaces of their access."""
    return _cases()["clusters"]


def rights() -> Mapping[str, tuple[str, Access, bool]]:
    """Return the level of access, the request and the verdict of each case, by its name."""
    return {
        why: (
            case["level"],
            Access(
                case["verb"],
                case.get("group", ""),
                case["resource"],
                case.get("namespace"),
                case.get("name"),
            ),
            case["allowed"],
        )
        for why, case in _cases()["rights"].items()
    }


def objects(section: str) -> Mapping[str, tuple[str, Document, bool, bool]]:
    """Return the plural, the object, the verdict and whether a person sends it, by case.

    Args:
        section: ``queued``; or ``services``, with LeaderWorkerSets in queues; or ``ray``.
    """
    return {
        what: (
            case["of"],
            patched(_cases()["objects"][case["of"]], case),
            case["allowed"],
            case.get("by") != "controller",
        )
        for what, case in _cases()[section].items()
    }


def engine_of(cluster: str) -> tuple[str, str] | None:
    """Return the engine of a file of ``clusters/`` and the queue of a role there."""
    engines: Mapping[str, Document] = _cases()["engines"]
    found = ((e, each["queue"]) for e, each in engines.items() if each["file"] == cluster)
    return next(found, None)


def bound(engine: str, queue: str, section: str = "bound") -> Mapping[str, tuple[Document, bool]]:
    """Return the object that a role of a queue sends and the verdict, by the case's name."""
    return {
        what: (
            yaml.safe_load(
                yaml.safe_dump(patched(_cases()["objects"][case["of"]], case)).replace(
                    "QUEUE", queue
                )
            ),
            case["allowed"],
        )
        for what, case in _cases()[section].items()
        if engine in case["in"]
    }


def patched(document: Document, case: Document) -> Document:
    """Return ``document`` with a case's patch."""
    changed: Any = merged(document, case.get("patch", {}))
    return changed


def attacks() -> Mapping[str, Document]:
    """Return the routes by which an editor would take the requests of others."""
    return yaml.load((DATA / "front-route-attacks.yaml").read_text(), yaml.CSafeLoader)


def hostile_route(own: Document, attack: Document) -> Document:
    """Return the route of an attack, from that of the editor's own service."""
    route = deepcopy(own)
    (rule,) = route["spec"]["rules"]
    for key, part in (("matches", "match"), ("backendRefs", "backend")):
        rule[key] = [merged(rule[key][0], attack.get(part, {}))]
    route["spec"]["rules"] = [merged(rule, attack.get("rule", {}))]
    return patched(route, {"patch": attack.get("route", {})})
