"""No key of the cluster file is without effect: a setting that does nothing is a broken promise."""

import copy
from collections.abc import Iterator
from typing import Any, cast

import pytest
import yaml

from tests.assembly import ROOT
from ultrascale import config, plan
from ultrascale.errors import ConfigError
from ultrascale.plan import plan_cluster

Path = tuple[str | int, ...]
DOCUMENT: dict[str, Any] = yaml.safe_load((ROOT / "clusters" / "trainium-bert.yaml").read_text())
# Where the file states a default, another value must make the difference.
OTHER_VALUES: dict[Path, object] = {
    ("kubernetes", "version"): "1.36",
    ("kubernetes", "endpoint", "private"): False,
    ("pools", 0, "purchase"): {"option": "spot"},
    ("pools", 0, "purchase", "option"): "spot",
    ("pools", 1, "purchase"): {"option": "spot"},
    ("pools", 1, "purchase", "option"): "spot",
    ("scheduling", "queues", 0, "weight"): 2,
    ("scheduling", "rendezvous", "replicas"): 3,
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


def changed(path: Path, *value: object) -> dict[str, Any]:
    document = copy.deepcopy(DOCUMENT)
    parent: Any = document
    for part in path[:-1]:
        parent = parent[part]
    if value:
        (parent[path[-1]],) = value
    else:
        del parent[path[-1]]
    return document


@pytest.mark.parametrize("path", [*paths(DOCUMENT)], ids=lambda path: ".".join(map(str, path)))
def test_a_key_that_is_taken_away_or_changed_is_missed(path: Path) -> None:
    whole = outcome(DOCUMENT)
    assert isinstance(whole, plan.ClusterPlan)

    without = outcome(changed(path))

    if without == whole:
        assert path in OTHER_VALUES, "the key has no effect"
        assert outcome(changed(path, OTHER_VALUES[path])) != whole
