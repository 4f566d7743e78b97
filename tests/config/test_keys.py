"""No key of the cluster file is without effect: a setting that does nothing is a broken promise."""

import copy
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, cast

import yaml

from tests.support.cases import for_each
from tests.support.folders import ROOT
from tests.support.pools import as_json, loads_own
from ultrascale.errors import ConfigError
from ultrascale.jobs import prepare
from ultrascale.plan import plan_cluster

Keys = tuple[str | int, ...]
DOCUMENTS: dict[str, dict[str, Any]] = {
    name: yaml.load((ROOT / "clusters" / f"{name}.yaml").read_text(), yaml.CSafeLoader)
    for name in ("trainium-bert", "mixed-capacity", "auto-mode", "hybrid-hyperpod", "ultra-100k")
}
# Where a file states a default, another value must make the difference; by the last keys.
OTHER_VALUES: dict[Keys, object] = {
    ("kubernetes", "version"): "1.36",
    ("kubernetes", "endpoint"): {"private": False},
    ("endpoint", "private"): False,
    ("kubernetes", "service_cidr"): "172.21.0.0/16",
    ("purchase",): {"option": "spot"},
    ("purchase", "option"): "spot",
    ("purchase", "spill"): "on-demand",
    ("nodes", "min"): 1,
    ("role",): "reserved",
    ("queues", 0, "weight"): 2,
    ("rendezvous", "replicas"): 3,
    ("pools", 3, "zones"): ["us-east-1a"],
    ("resources", "gpu"): 4,
    ("node_recovery",): "none",
    ("teams", 0, "lend"): False,
    ("scheduling",): {"priority_classes": {"critical": 1}},
    ("scheduling", "priority_classes"): {"critical": 1},
    ("backend", "namespace"): "apps",
    ("database", "engine"): "mysql",
}
# What a job is sent with that its template leaves open.
SENT = {"image": "docker.io/example/train:1", "command": ["train"]}


def paths(value: object, prefix: Keys = ()) -> Iterator[Keys]:
    if isinstance(value, dict):
        for key, item in cast("dict[str, object]", value).items():
            yield (*prefix, key)
            yield from paths(item, (*prefix, key))
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[object]", value)):
            yield from paths(item, (*prefix, index))


def outcome(document: dict[str, Any], job: str | None = None) -> object:
    """Return the plan of a cluster file, or what ``job`` of it becomes; or the mistakes."""
    text = as_json(document)
    try:
        if job is None:
            return plan_cluster(loads_own(text))
        with NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(text)
            file.flush()
            return prepare(Path(file.name), job, changes=SENT)
    except ConfigError as error:
        return tuple(line.rpartition(".yaml: ")[2] for line in error.mistakes)


@cache
def whole(name: str, job: str | None) -> object:
    return outcome(DOCUMENTS[name], job)


def changed(document: dict[str, Any], path: Keys, *value: object) -> dict[str, Any]:
    document = copy.deepcopy(document)
    parent: Any = document
    for part in path[:-1]:
        parent = parent[part]
    if value:
        (parent[path[-1]],) = value
    else:
        del parent[path[-1]]
    return document


CASES = [(name, path) for name, document in DOCUMENTS.items() for path in paths(document)]


@for_each({f"{name}:{'.'.join(map(str, path))}": (name, path) for name, path in CASES})
def test_a_key_that_is_taken_away_or_changed_is_missed(name: str, path: Keys) -> None:
    document = DOCUMENTS[name]
    job = str(path[1]) if path[0] == "jobs" and len(path) > 1 else None
    given = whole(name, job)
    assert not isinstance(given, tuple)

    without = outcome(changed(document, path), job)

    if without == given:
        others = [value for keys, value in OTHER_VALUES.items() if path[-len(keys) :] == keys]
        assert others, "the key has no effect"
        assert all(outcome(changed(document, path, value), job) != given for value in others)
