"""No key of the cluster file is without effect: a setting that does nothing is a broken promise."""

import copy
from collections.abc import Iterator
from functools import cache
from typing import Any, cast

import pytest
import yaml

from tests.assembly import ROOT
from ultrascale import config, plan
from ultrascale.errors import ConfigError
from ultrascale.plan import plan_cluster

Path = tuple[str | int, ...]
DOCUMENTS: dict[str, dict[str, Any]] = {
    name: yaml.safe_load((ROOT / "clusters" / f"{name}.yaml").read_text())
    for name in ("trainium-bert", "mixed-capacity", "auto-mode")
}
# Where a file states a default, another value must make the difference; by the last keys.
OTHER_VALUES: dict[Path, object] = {
    ("kubernetes", "version"): "1.36",
    ("kubernetes", "endpoint"): {"private": False},
    ("endpoint", "private"): False,
    ("purchase",): {"option": "spot"},
    ("purchase", "option"): "spot",
    ("purchase", "spill"): "on-demand",
    ("nodes", "min"): 1,
    ("role",): "reserved",
    ("queues", 0, "weight"): 2,
    ("rendezvous", "replicas"): 3,
}


def paths(value: object, prefix: Path = ()) -> Iterator[Path]:
    if isinstance(value, dict):
        for key, item in cast("dict[str, object]", value).items():
            yield (*prefix, key)
            yield from paths(item, (*prefix, key))
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[object]", value)):
            yield from paths(item, (*prefix, index))


def outcome(document: dict[str, Any]) -> plan.ClusterPlan | tuple[str, ...]:
    try:
        return plan_cluster(config.loads(yaml.safe_dump(document, sort_keys=False)))
    except ConfigError as error:
        return error.mistakes


@cache
def whole_plan(name: str) -> plan.ClusterPlan | tuple[str, ...]:
    return outcome(DOCUMENTS[name])


def changed(document: dict[str, Any], path: Path, *value: object) -> dict[str, Any]:
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


@pytest.mark.parametrize(
    ("name", "path"), CASES, ids=[f"{name}:{'.'.join(map(str, path))}" for name, path in CASES]
)
def test_a_key_that_is_taken_away_or_changed_is_missed(name: str, path: Path) -> None:
    document = DOCUMENTS[name]
    whole = whole_plan(name)
    assert isinstance(whole, plan.ClusterPlan)

    without = outcome(changed(document, path))

    if without == whole:
        others = [value for keys, value in OTHER_VALUES.items() if path[-len(keys) :] == keys]
        assert others, "the key has no effect"
        assert all(outcome(changed(document, path, value)) != whole for value in others)
