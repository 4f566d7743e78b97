"""Nodes that are paid for from the first minute come last, and of this very file."""

from pathlib import Path

import pytest

from tests.support.deployments import write_assembly
from tests.support.fake_aws import ID
from tests.support.pools import (
    HYPERPOD_POOL,
    ODCR,
    SYSTEM_POOL,
    as_text,
    make_document,
    pool_document,
)
from ultrascale import config
from ultrascale.deploy.cdk import read_assembly, refuse_other
from ultrascale.deploy.deployment import waits_for
from ultrascale.errors import QuestionError
from ultrascale.plan import ClusterPlan, plan_cluster
from ultrascale.plan.stacks import planned_stacks

STACKS: dict[str, list[str]] = {
    "research-network": [],
    "research-cluster": ["research-network"],
    "research-system": ["research-cluster"],
    "research-platform": ["research-system"],
    "research-node-pools": ["research-platform"],
    "research-observability": ["research-platform"],
    "research-hyperpod-groups": ["research-platform"],
    "research-a": ["research-platform"],
    "research-b": ["research-platform"],
    "research-teams": ["research-hyperpod-groups"],
}


@pytest.fixture(scope="module")
def plan() -> ClusterPlan:
    pools = [pool_document(name=name, purchase=ODCR) for name in ("a", "b")]
    document = make_document(pools=[SYSTEM_POOL, *pools, HYPERPOD_POOL])
    return plan_cluster(config.loads(as_text(document)))


def test_nothing_may_still_fail_once_nodes_are_paid_for(tmp_path: Path, plan: ClusterPlan) -> None:
    write_assembly(tmp_path, STACKS)
    order = waits_for(read_assembly(tmp_path), plan)
    first = {f"research-{name}" for name in ("network", "cluster", "system", "platform")}
    first |= {"research-observability"}
    for name in ("a", "b", "node-pools", "hyperpod-groups"):
        assert order[f"research-{name}"] == first
    assert order["research-teams"] == first | {"research-hyperpod-groups"}
    assert order["research-observability"] == {"research-platform"}


def test_one_after_the_other_each_stack_comes_after_what_it_waits_for(
    tmp_path: Path, plan: ClusterPlan
) -> None:
    # The CDK lists a stack where it is defined, whatever it was told later to wait for.
    write_assembly(tmp_path, {name: STACKS[name] for name in reversed(STACKS)})
    order = waits_for(read_assembly(tmp_path), plan)
    names = [*order]
    assert {*names} == STACKS.keys()
    for number, name in enumerate(names):
        assert order[name] <= {*names[:number]}


def stacks_of(plan: ClusterPlan) -> dict[str, list[str]]:
    """Return the stacks of the file, of which none needs another."""
    return {name: [] for name in planned_stacks(plan)}


def refused(folder: Path, plan: ClusterPlan) -> list[str]:
    stacks = read_assembly(folder)
    with pytest.raises(QuestionError) as error:
        refuse_other(stacks, plan, account=ID, folder=folder)
    return [line.removeprefix("--assembly: the ") for line in error.value.mistakes]


def test_a_folder_of_this_file_is_taken(tmp_path: Path, plan: ClusterPlan) -> None:
    write_assembly(tmp_path, stacks_of(plan), account=ID)
    refuse_other(read_assembly(tmp_path), plan, account=ID, folder=tmp_path)


def test_a_folder_of_another_file_is_refused(tmp_path: Path, plan: ClusterPlan) -> None:
    others: dict[str, list[str]] = {name.replace("research", "other"): [] for name in STACKS}
    write_assembly(tmp_path, others | {"research-network": []})
    lines = refused(tmp_path, plan)
    assert "stack other-network is none of the file's" in lines[0]
    assert "file's stack research-a is missing" in "\n".join(lines)


def test_a_folder_of_this_file_before_it_changed_is_refused(
    tmp_path: Path, plan: ClusterPlan
) -> None:
    own = stacks_of(plan)
    write_assembly(tmp_path, {**own, "research-storage": []})
    (gone,) = refused(tmp_path, plan)
    write_assembly(tmp_path, {name: [] for name in own if name != "research-b"})
    (missing,) = refused(tmp_path, plan)
    assert gone.startswith("stack research-storage is none of the file's")
    assert missing.startswith("file's stack research-b is missing")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"region": "us-east-1"}, "is for us-east-1, and the file for us-west-2"),
        ({"account": "555566667777"}, f"is for account 555566667777, and not for {ID}"),
    ],
)
def test_a_folder_for_another_place_is_refused(
    tmp_path: Path, plan: ClusterPlan, changes: dict[str, str], told: str
) -> None:
    own = stacks_of(plan)
    write_assembly(tmp_path, own, **changes)
    lines = refused(tmp_path, plan)
    assert len(lines) == len(own)
    assert told in lines[0]


def test_a_folder_without_an_assembly_is_refused(tmp_path: Path) -> None:
    with pytest.raises(QuestionError, match="nothing is synthesized there"):
        read_assembly(tmp_path)
    (tmp_path / "manifest.json").write_text('{"artifacts": {')
    with pytest.raises(QuestionError, match=r"manifest\.json is no JSON"):
        read_assembly(tmp_path)
