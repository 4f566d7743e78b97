"""Objects of the file and of the server, compared field by field.

Sources:
    https://kubernetes.io/docs/reference/using-api/server-side-apply/ (managed fields)
    https://github.com/kubernetes-sigs/structured-merge-diff/blob/master/fieldpath/serialize-pe.go
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache

from ultrascale.catalog.tables import Row, read_rows
from ultrascale.cluster_api.objects import Object
from ultrascale.documents import Json, look_up, mapping, objects, parse_json, text
from ultrascale.frozen import Frozen
from ultrascale.guard.templates import quantity, shown

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
OURS = frozenset({"kubectl-client-side-apply", "helm"})
"""Managers of the CDK's kubectl and Helm. People may use the same programs."""
_PEOPLE = re.compile(r"kubectl.*|k9s|Lens|node-fetch|Mozilla|OpenLens|Headlamp")
# Annotations of kubectl and Helm themselves.
_OF_TOOLS = (LAST_APPLIED, "meta.helm.sh/")
_BY_SERVER = ("managedFields", "resourceVersion", "generation", "creationTimestamp", "uid")
REFERENCE = re.compile(r"<(?:[\w-]+\.[\w.:-]+|AWS::\w+)>")
"""A reference of a template, as `ultrascale.guard` writes it into text."""
_KEYS = ("name", "key", "mountPath", "containerPort", "port")
_ABSENT: Sequence[Json] = (None, "", [], {})

Path = tuple[str, ...]
Fields = Mapping[Path, Json]


class _Owner(Row, frozen=True):
    """A row of `field_owners.csv`: controllers that may set a field of an object."""

    manager: str
    kind: str
    path: str


@cache
def _owners() -> Sequence[_Owner]:
    return read_rows("field_owners.csv", _Owner)


class Difference(Frozen):
    """A field that differs."""

    path: Path  # Its path; an item of a list by its key, in brackets
    found: Json  # Its value on the server
    wanted: Json = None  # Its value in the file
    managers: Sequence[str] = ()  # Managers other than ours that set it

    def __str__(self) -> str:
        """Its path, both values and the managers."""
        place = ".".join(self.path).replace(".[", "[")
        by = f" by {', '.join(self.managers)}" if self.managers else ""
        return f"{place} is {shown(self.found)}{by}, {shown(self.wanted)} in the file"

    def is_controllers(self, kind: str) -> bool:
        """Return whether controllers own the field of an object of ``kind``, and no person."""
        place = ".".join(self.path)
        rows = [
            row for row in _owners() if row.kind in ("*", kind) and fnmatchcase(place, row.path)
        ]
        return bool(self.managers) and all(
            any(
                row.manager == name or (row.manager == "*" and not _PEOPLE.fullmatch(name))
                for row in rows
            )
            for name in self.managers
        )


def fields(value: Json, path: Path = ()) -> Iterator[tuple[Path, Json]]:
    """Yield the fields of a document that hold no others; items of lists by a key, if they have."""
    inner = value if isinstance(value, Mapping) else _items(value)
    if not inner and value not in _ABSENT:
        yield path, value
    for key, item in inner.items():
        yield from fields(item, (*path, key))


def stated_fields(manifest: Object) -> Fields:
    """Return the fields of an object that people decide: neither status nor the server's own."""
    return {
        path: value
        for path, value in fields(manifest)
        if path[0] != "status"
        and not (path[0] == "metadata" and path[1] in _BY_SERVER)
        and not (path[1:2] == ("annotations",) and path[2].startswith(_OF_TOOLS))
    }


def differences(wanted: Fields, live: Object, *, whole: bool) -> Iterator[Difference]:
    """Yield the fields that have another value on the server.

    Args:
        wanted: The fields as the file has them.
        live: The object on the server.
        whole: Whether ``wanted`` has all fields, and not only those that the file states.
    """
    found, others = stated_fields(live), others_fields(live)
    for path in wanted if not whole else {**wanted, **found}:
        ours, theirs = wanted.get(path), found.get(path)
        # The server writes quantities anew, and leaves fields out that are 0 or false.
        same = ours == theirs or (
            not whole
            and (quantity(ours) == quantity(theirs) is not None or (not ours and not theirs))
        )
        if not same:
            managers = [
                name for name, owned in others.items() if any(path[: len(o)] == o for o in owned)
            ]
            yield Difference(path=path, found=theirs, wanted=ours, managers=managers)


def added(wanted: Fields, live: Object) -> Iterator[Difference]:
    """Yield the fields that the file does not have, of other managers, then of kubectl's apply."""
    known = {path[:length] for path in wanted for length in range(1, len(path) + 1)}
    found = stated_fields(live)
    applied = parse_json(text(live, "metadata", "annotations", LAST_APPLIED) or "{}")
    before = {"": [path for path in stated_fields(applied)]}
    for name, owned in {**others_fields(live), **before}.items():
        for path in owned:
            is_ours = path in known or any(path[:length] in wanted for length in range(len(path)))
            values = [value for other, value in found.items() if other[: len(path)] == path]
            if values and not is_ours:
                managers = [name] if name else []
                yield Difference(path=path, found=values[0], managers=managers)


def others_fields(live: Object) -> Mapping[str, Sequence[Path]]:
    """Return the fields of an object that other managers than ours have set, by the manager."""
    others: dict[str, list[Path]] = {}
    for entry in objects(live, "metadata", "managedFields"):
        manager = text(entry, "manager")
        if manager not in OURS and text(entry, "subresource") != "status":
            others.setdefault(manager, []).extend(_owned(mapping(entry, "fieldsV1"), live, ()))
    return {name: [p for p in paths if p[0] != "status"] for name, paths in others.items()}


def _owned(owned: Object, live: Json, path: Path) -> Iterator[Path]:
    steps = {step: inner for step, inner in owned.items() if step != "."}
    if not steps and path:
        yield path
    for step, inner in steps.items():
        kind, _, key = step.partition(":")
        items = live if isinstance(live, Mapping) else _items(live)
        if kind in ("k", "v"):
            wanted: Json = parse_json(key)
            key = next((name for name, item in items.items() if _is_item(item, wanted)), key)
        elif kind == "i":
            key = f"[{key}]"
        yield from _owned(mapping({"": inner}, ""), items.get(key), (*path, key))


def _is_item(item: Json, wanted: Json) -> bool:
    if not isinstance(wanted, Mapping):
        return item == wanted
    return all(look_up(item, key) == value for key, value in wanted.items())


def _items(items: Json) -> Mapping[str, Json]:
    """Return the items of a list by their key, or by their value, or else by their place."""
    if not isinstance(items, list):
        return {}
    keys = [
        next((f"[{item[key]}]" for key in _KEYS if key in item), "")
        if isinstance(item, Mapping)
        else f"[{json.dumps(item)}]"
        for item in items
    ]
    if "" in keys or len({*keys}) != len(keys):
        keys = [f"[{place}]" for place in range(len(keys))]
    return dict(zip(keys, items, strict=True))


def fill(manifest: Object, live: Object, values: dict[str, str]) -> Object:
    """Return an object with values of the server in the place of references of its template.

    Args:
        manifest: The object.
        live: The object on the server.
        values: Values by reference, which the first object that shows one adds.
    """
    found = stated_fields(live)
    for path, value in fields(manifest):
        names = REFERENCE.findall(value) if isinstance(value, str) else []
        if names:
            pattern = "(.+)".join(map(re.escape, REFERENCE.split(str(value))))
            match = re.fullmatch(pattern, str(found.get(path, "")), re.DOTALL)
            for name, part in zip(names, match.groups() if match else (), strict=False):
                values.setdefault(name, part)
    known = {name: json.dumps(value)[1:-1] for name, value in values.items()}
    return mapping(
        parse_json(REFERENCE.sub(lambda name: known.get(name[0], name[0]), json.dumps(manifest)))
    )
