"""Storage that the cluster file says exists: a teardown names and touches none of it."""

from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.estate.account import Estate
from tests.support.estate.cluster import BUCKET, DOCUMENT, estate, ids, kept
from tests.support.pools import as_text, loads_own
from ultrascale.errors import QuestionError
from ultrascale.plan import ClusterPlan, plan_cluster
from ultrascale.teardown import sweep
from ultrascale.teardown.kept import Asked, refuse_unknown

CORPUS, CORP, GROUP = "fs-0f9e8d7c6b5a43210", "corp-datasets", "sg-0a1b2c3d4e5f60001"
LAYER, LOGICAL = "aws:cloudformation:stack-name", "aws:cloudformation:logical-id"


def planned() -> ClusterPlan:
    """Return the plan of a cluster that mounts its own file system, and one of others."""
    ids = {"id": CORPUS, "mount_name": "abcdefgh", "security_group": GROUP}
    storage: dict[str, Any] = deepcopy(DOCUMENT["storage"])
    storage["lustre"].append({"name": "corpus", "zone": "us-west-2b", "existing": ids})
    storage["buckets"].append({"name": "sets", "existing": CORP})
    return plan_cluster(loads_own(as_text(DOCUMENT | {"storage": storage})))


def account(*, tagged: bool) -> Estate:
    """Return the account; ``tagged``: a former deployment of the cluster made what exists."""
    found = estate()
    found.plan = planned()
    tags = [
        {"Key": LAYER, "Value": "research-storage"},
        {"Key": LOGICAL, "Value": "corpus1CA5CB2F"},
    ]
    found.file_systems[CORPUS] = {
        "FileSystemId": CORPUS,
        "Lifecycle": "AVAILABLE",
        "StorageCapacity": 4800,
        "CreationTime": datetime(2026, 3, 1, tzinfo=UTC),
        "LustreConfiguration": {"PerUnitStorageThroughput": 125},
        "Tags": tags if tagged else [{"Key": "Name", "Value": "corpus"}],
    }
    found.groups[GROUP] = {"GroupId": GROUP, "GroupName": "lustre", "Tags": []}
    found.buckets[CORP] = ["a"]
    if tagged:
        found.tagged[f"arn:aws:s3:::{CORP}"] = tags
    return found


@pytest.mark.parametrize("tagged", [False, True], ids=["of others", "once of this cluster"])
def test_it_is_neither_named_nor_touched(tmp_path: Path, tagged: bool) -> None:
    cluster = account(tagged=tagged)

    teardown = cluster.planned(Asked(storage=frozenset({"data"}), logs=True))
    told = sweep(cluster.scope, teardown)
    cluster.carry_out(teardown, tmp_path)
    rest = sweep(cluster.scope, teardown)

    named = ids(teardown) | kept(teardown).keys()
    named |= {left.thing.id for found in (told, rest) for left in found.left}
    assert not {CORPUS, CORP, GROUP} & (named | {*cluster.deleted})
    assert CORPUS in cluster.file_systems
    assert cluster.buckets[CORP] == ["a"]
    # What the cluster made goes all the same, because it was named.
    assert BUCKET in cluster.deleted


@pytest.mark.parametrize("name", ["corpus", CORPUS, "sets", CORP, GROUP])
def test_it_cannot_be_named_to_go(name: str) -> None:
    with pytest.raises(QuestionError, match=f"'{name}' exists by the cluster file"):
        refuse_unknown(planned(), Asked(storage=frozenset({name})))
