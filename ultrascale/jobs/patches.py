"""JSON merge patches over the objects of a job.

Source: https://www.rfc-editor.org/rfc/rfc7396
"""

from collections.abc import Iterator, Mapping, Sequence

from ultrascale import config
from ultrascale.catalog import object_keys
from ultrascale.documents import Json, JsonObject, look_up, mapping, objects, text

_IDENTITY: tuple[tuple[str, ...], ...] = (
    ("apiVersion",),
    ("kind",),
    ("metadata", "name"),
    ("metadata", "namespace"),
)
_Place = tuple[str | int, ...]


def merged(target: Json, patch: Json) -> Json:
    """Return ``target`` with ``patch``: null removes a key, a list replaces a list as a whole."""
    if not isinstance(patch, Mapping):
        return _thawed(patch)
    kept = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            kept.pop(key, None)
        else:
            kept[key] = merged(kept.get(key), value)
    return kept


def _thawed(value: Json) -> Json:
    """Return ``value`` with lists in place of the tuples of a read file."""
    if isinstance(value, Mapping):
        return {key: _thawed(child) for key, child in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_thawed(child) for child in value]
    return value


def patched(
    manifests: Sequence[dict[str, Json]], patches: Mapping[str, JsonObject]
) -> list[dict[str, Json]]:
    """Return ``manifests`` with the patch of each one's kind."""
    return [
        dict(mapping(merged(manifest, patches.get(text(manifest, "kind"), {}))))
        for manifest in manifests
    ]


def notes_of(patches: Mapping[str, JsonObject]) -> Iterator[str]:
    """Yield the values that each patch sets and removes, by path."""
    for kind, patch in patches.items():
        leaves = {".".join(path): value for path, value in _leaves(patch)}
        parts = {
            "sets": [path for path, value in leaves.items() if value is not None],
            "removes": [path for path, value in leaves.items() if value is None],
        }
        done = " and ".join(f"{verb} {', '.join(paths)}" for verb, paths in parts.items() if paths)
        done = done or "changes nothing"
        yield f"The job's patch of {kind} {done}; only the API server judges it."


def mistakes_of(
    rendered: Sequence[JsonObject], patches: Mapping[str, JsonObject]
) -> Iterator[config.Mistake]:
    """Yield patches of kinds that a job does not have, and those after which no command knows it.

    Args:
        rendered: The objects before any patch.
        patches: Patches by kind.
    """
    kinds = list(dict.fromkeys(text(manifest, "kind") for manifest in rendered))
    for kind, patch in patches.items():
        if kind not in kinds:
            wrong, todo = (
                "no kind of object that this job consists of",
                f"it has {', '.join(kinds)}",
            )
            yield config.Mistake(("patch", kind), wrong, todo, got="", code="patch_has_its_object")
            continue
        lost = [
            what
            for manifest in rendered
            if text(manifest, "kind") == kind
            for what in _missing_names(manifest, mapping(merged(manifest, patch)))
        ]
        for what in dict.fromkeys(lost):
            wrong = f"takes away {what}, by which the job, its pods and their logs are found"
            todo = "a list replaces the whole list: write all of it, or leave it out"
            yield config.Mistake(("patch", kind), wrong, todo, got="", code="patch_keeps_names")


def _missing_names(before: JsonObject, after: JsonObject) -> Iterator[str]:
    for path in _IDENTITY:
        if look_up(before, *path) != look_up(after, *path):
            yield ".".join(path)
    labels = dict(_labels(after))
    for place, value in _labels(before):
        if labels.get(place) != value:
            yield f"the label {place[-1]}"
    own, job = _programs(before), text(before, "metadata", "labels", object_keys.JOB_LABEL)
    for template in _templates(after):
        if text(template, "metadata", "labels", object_keys.JOB_LABEL) != job:
            yield f"the label {object_keys.JOB_LABEL} of pods"
        names = {text(container, "name") for container in objects(template, "spec", "containers")}
        if not names & own:
            yield f"the container {' or '.join(sorted(own))}"


def _programs(manifest: JsonObject) -> set[str]:
    return {
        text(container, "name")
        for template in _templates(manifest)
        for container in objects(template, "spec", "containers")
    }


def _labels(value: Json, at: _Place = ()) -> Iterator[tuple[_Place, Json]]:
    """Yield the place and value of each label by which commands know a job."""
    for key, child in _children(value):
        if key in object_keys.LABELS_OF_JOBS:
            yield (*at, key), child
        yield from _labels(child, (*at, key))


def _templates(value: Json) -> Iterator[JsonObject]:
    if isinstance(value, Mapping) and "containers" in mapping(value, "spec"):
        yield value
        return
    for _, child in _children(value):
        yield from _templates(child)


def _children(value: Json) -> Iterator[tuple[str | int, Json]]:
    if isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, Sequence) and not isinstance(value, str):
        yield from enumerate(value)


def _leaves(value: Json, at: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Json]]:
    if isinstance(value, Mapping) and value:
        for key, child in value.items():
            yield from _leaves(child, (*at, key))
    elif at:
        yield at, value
