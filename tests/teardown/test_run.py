"""A teardown that fails, is killed and goes on: what is paid for must end, and nothing else."""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.support.estate.account import Estate
from tests.support.estate.cluster import ALL, LOGS, ORDER, estate, hyperpod_estate, ids
from tests.support.estate.doubles import KilledError
from tests.support.fake_aws import THROTTLED, Refusal, denied
from tests.support.soak import LONG
from tests.support.stub_api_server import Refusal as ApiRefusal
from ultrascale.errors import UltrascaleError
from ultrascale.teardown import sweep
from ultrascale.teardown.model import StoppedError


@pytest.fixture(autouse=True)
def no_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for no disk: the tests write thousands of lines."""

    def sync(_: int) -> None:
        pass

    monkeypatch.setattr("os.fsync", sync)


def names(printed: set[str]) -> set[str]:
    """Return ids as requests name them."""
    return printed | {id.rpartition("/")[2] for id in printed} | {"deletion protection"}


def test_a_whole_cluster_goes_in_order_and_leaves_nothing(tmp_path: Path) -> None:
    cluster = estate()
    teardown = cluster.run(tmp_path, ALL)
    assert sorted(cluster.deleted, key=ORDER.index) == cluster.deleted
    assert set(cluster.deleted) == set(ORDER)
    found = sweep(cluster.scope, teardown)
    assert found.orphans == found.unknown == ()
    assert {each.thing.id for each in found.left} == {"key-1", "vol-2"}


@pytest.mark.parametrize("build", [estate, hyperpod_estate])
def test_what_is_killed_at_any_request_goes_on_and_deletes_nothing_unprinted(
    build: Callable[[], Estate], tmp_path: Path
) -> None:
    whole = build()
    whole.run(tmp_path, ALL)

    # Before and after each request with SOAK in the environment, else in turns.
    numbers = range(1, whole.changes + 1)
    kills = product(numbers, (False, True)) if LONG else ((n, n % 2 == 0) for n in numbers)
    for number, after in kills:
        folder = tmp_path / f"{number}-{after}"
        folder.mkdir()
        cluster = build()
        cluster.kill_at, cluster.kill_after = number, after
        killed = cluster.planned(ALL)
        with pytest.raises(KilledError):
            cluster.carry_out(killed, folder)

        teardown = cluster.planned(ALL)
        cluster.carry_out(teardown, folder)

        assert set(cluster.deleted) == set(whole.deleted)
        assert set(cluster.deleted) <= names(ids(killed) | ids(teardown))
        assert not cluster.instances
        assert not cluster.hyperpod
        assert sweep(cluster.scope, teardown).orphans == ()


def test_what_is_killed_while_it_looks_and_waits_goes_on(tmp_path: Path) -> None:
    whole = estate()
    whole.run(tmp_path, ALL)

    # Between two changes the account only goes on with what it was asked for.
    for number in range(1, whole.requests, whole.requests // 20):
        folder = tmp_path / str(number)
        folder.mkdir()
        cluster = estate()
        cluster.kill_request = number
        with pytest.raises(KilledError):
            cluster.run(folder, ALL)

        teardown = cluster.run(folder, ALL)

        assert set(cluster.deleted) == set(ORDER)
        assert sweep(cluster.scope, teardown).orphans == ()


# What each step deletes first.
FIRST = {
    "jobs": "bert",
    "node-pools": "burst",
    "node-groups": "research-train",
    "load-balancers": "web",
    "platform": "research-karpenter",
    "volumes": "db",
    "add-ons": "research-addons",
    "cluster": "deletion protection",
    "storage": LOGS,
    "network": "research-network",
}


def test_each_step_is_failed_once_below() -> None:
    assert [*FIRST] == [step.name for step in estate().planned(ALL).steps]


@pytest.mark.parametrize("step", FIRST)
def test_a_step_that_fails_begins_no_other_hides_nothing_paid_and_is_gone_on_with(
    step: str, tmp_path: Path
) -> None:
    cluster = estate()
    cluster.refused = FIRST[step]
    later = [*FIRST.values()][[*FIRST].index(step) + 1 :]
    teardown = cluster.planned(ALL)

    with pytest.raises(StoppedError, match=f"{FIRST[step]}.*then run the command again"):
        cluster.carry_out(teardown, tmp_path)

    assert not {*cluster.deleted} & {cluster.refused, *later}
    left = {each.thing.id for each in sweep(cluster.scope, teardown).left}
    assert left >= {name for name, each in cluster.stacks.items() if each.live}
    assert left >= {*cluster.instances, *cluster.file_systems, *cluster.buckets}
    assert cluster.cluster is None or "research" in left

    cluster.refused = ""
    cluster.run(tmp_path, ALL)
    assert {*cluster.deleted} == {*ORDER}
    assert not cluster.instances


# Whatever a run asks that changes something; the first answer is an error each time.
CHANGES = [
    "cloudformation:DeleteStack",
    "eks:UpdateClusterConfig",
    "fsx:DeleteFileSystem",
    "ecr:DeleteRepository",
    "ec2:DeleteSecurityGroup",
    "logs:DeleteLogGroup",
    "s3:DeleteObjects",
    "s3:DeleteBucket",
]


@pytest.mark.parametrize("action", CHANGES)
def test_a_throttle_ends_no_teardown(action: str, tmp_path: Path) -> None:
    cluster = estate()
    answer: Any = cluster.answers[action]
    throttles = iter([True, True])

    def throttled(asked: dict[str, Any]) -> Any:
        if next(throttles, False):
            raise THROTTLED
        return answer(asked)

    cluster.answers[action] = throttled

    cluster.run(tmp_path, ALL)

    assert set(cluster.deleted) == set(ORDER)


@pytest.mark.parametrize("action", CHANGES)
def test_a_refusal_stops_says_what_to_allow_and_the_next_run_goes_on(
    action: str, tmp_path: Path
) -> None:
    cluster = estate()
    answer = cluster.answers[action]
    cluster.answers[action] = denied(action)
    with pytest.raises(StoppedError, match=f"allow {action}, then run the command again"):
        cluster.run(tmp_path, ALL)
    cluster.answers[action] = answer
    cluster.run(tmp_path, ALL)
    assert set(cluster.deleted) == set(ORDER)


@pytest.mark.parametrize("kind", ["jobs", "nodepools", "services", "persistentvolumeclaims"])
def test_a_refusal_of_the_api_server_stops_and_the_next_run_goes_on(
    kind: str, tmp_path: Path
) -> None:
    cluster = estate()
    cluster.api.refuse("DELETE", f"/{kind}/", refusal := ApiRefusal(403, "may not delete"))
    with pytest.raises(StoppedError, match=r"may not delete; .*; mend that"):
        cluster.run(tmp_path, ALL)
    refusal.times = 0
    cluster.run(tmp_path, ALL)
    assert set(cluster.deleted) == set(ORDER)


@pytest.mark.parametrize("kind", ["jobs", "nodepools", "services", "persistentvolumeclaims"])
def test_an_api_server_that_fails_for_a_moment_ends_no_teardown(kind: str, tmp_path: Path) -> None:
    cluster = estate()
    cluster.api.refuse("DELETE", f"/{kind}/", ApiRefusal(500, times=2))
    cluster.run(tmp_path, ALL)
    assert set(cluster.deleted) == set(ORDER)


def test_an_account_that_cannot_be_asked_is_planned_nothing_of() -> None:
    cluster = estate()
    cluster.answers["cloudformation:ListStacks"] = Refusal("InternalFailure")
    with pytest.raises(UltrascaleError, match="cloudformation:ListStacks"):
        cluster.planned()
