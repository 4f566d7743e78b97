"""Keys of cluster files, and the files with one of them changed."""

import copy
from collections.abc import Iterator
from typing import Any, cast

import yaml

from tests.support.folders import ROOT
from tests.support.soak import LONG

Keys = tuple[str | int, ...]
DOCUMENTS: dict[str, dict[str, Any]] = {
    name: yaml.load((ROOT / "clusters" / f"{name}.yaml").read_text(), yaml.CSafeLoader)
    for name in (
        "trainium-bert",
        "mixed-capacity",
        "ray",
        "auto-mode",
        "hybrid-hyperpod",
        "llm-kueue",
        "ultra-100k",
        "existing-estate",
        "serving",
    )
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
    ("repair",): "none",
    ("queues", 0, "weight"): 2,
    ("queues", 0, "prefer"): ["burst"],
    ("chat-large", "replicas"): 2,
    ("chat", "health_path"): "/ready",
    ("autoscale", "min"): 3,
    ("notebook", "idle_hours"): 8,
    ("pretrain", "nodes"): 4,
    ("finetune", "nodes"): 2,
    ("reward", "nodes"): 2,
    # Without a pool a role takes the one that its queue prefers, and has one node.
    ("head", "pool"): "system",
    ("head", "nodes"): 2,
    ("workers", "pool"): "system",
    ("tokenize", "pool"): "burst",
    ("builds", "trainer"): "cpu",
    ("images", "builds"): {"trainer": "cpu"},
    ("endpoints", "create"): "missing",
    ("connected_cidrs",): ["172.16.0.0/12"],
    ("pools", 1, "zones"): ["us-east-1b"],
    ("pools", 2, "zones"): ["us-east-1b"],
    ("jobs",): {"train": {"pool": "nowhere"}},
    ("rendezvous", "replicas"): 3,
    ("pools", 3, "zones"): ["us-east-1a"],
    ("idle_hours",): 8,
    ("resources", "gpu"): 4,
    ("node_recovery",): "none",
    ("teams", 0, "lend"): False,
    ("scheduling",): {"priority_classes": {"critical": 1}},
    ("scheduling", "priority_classes"): {"critical": 1},
    ("backend", "namespace"): "apps",
    ("database", "engine"): "mysql",
}


def paths(value: object, prefix: Keys = ()) -> Iterator[Keys]:
    if isinstance(value, dict):
        for key, item in cast("dict[str, object]", value).items():
            yield (*prefix, key)
            yield from paths(item, (*prefix, key))
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[object]", value)):
            yield from paths(item, (*prefix, index))


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


# The other keys of these files are those of others, and each case is another plan.
_OWN = {
    "existing-estate": ("network", "keys", "storage", "images", "kubernetes"),
    "serving": ("jobs", "serving"),
}
# Names are the users' own: below these keys, what stands at one is at all of the others.
_NAMED = ("jobs", "builds")
_ALL = [
    (name, path)
    for name, document in DOCUMENTS.items()
    for path in paths(document)
    if path[0] in _OWN.get(name, document)
]


def _kind(name: str, path: Keys) -> Keys:
    """Return what ``path`` has in common with the paths to the same key of like parts.

    A key of a pool may do something by one provisioner alone, and one of a job by one kind.
    """
    document = DOCUMENTS[name]
    whose: Keys = ()
    section, *within = path
    if section == "pools" and len(within) > 1:
        pool = document["pools"][within[0]]
        whose = (pool["provisioner"], str(pool.get("purchase", {}).get("option")))
    elif section == "jobs" and len(within) > 1:
        whose = (str(document["jobs"][within[0]].get("kind", "training")),)
    general = (
        "*" if isinstance(key, int) or (index and path[index - 1] in _NAMED) else key
        for index, key in enumerate(path)
    )
    return (*whose, *general)


CASES = _ALL if LONG else [*{_kind(*case): case for case in reversed(_ALL)}.values()]
"""Keys to change, each in a file: one for each kind of pool and job, all with SOAK."""
