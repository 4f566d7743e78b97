"""An upgrade of Kubernetes: what it would break is said before anything is deployed."""

import json
from datetime import date
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kubernetes_validate
import pytest

from tests.support.folders import ROOT
from tests.support.pools import (
    CAPACITY_BLOCK,
    NEURON_POOL,
    ODCR,
    POOL,
    SYSTEM_POOL,
    as_text,
    loads_own,
    make_document,
)
from ultrascale import config
from ultrascale.catalog import eks, upgrades
from ultrascale.errors import QuestionError
from ultrascale.plan import load
from ultrascale.plan.upgrade.pools import pool_upgrades
from ultrascale.plan.upgrade.report import UpgradePlan, plan_upgrade, upgrade_steps

if TYPE_CHECKING:
    from tests.support.assembly import Assembly

FILES = sorted((ROOT / "clusters").glob("*.yaml"))
KARPENTER_POOL = POOL | {"provisioner": "karpenter"}


def upgraded(then: str = "1.36", **changes: Any) -> UpgradePlan:
    return plan_upgrade(loads_own(as_text(make_document(**changes))), then, {}, file="c.yaml")


def fates(*pools: dict[str, Any], **changes: Any) -> dict[str, str]:
    found = upgraded(pools=[SYSTEM_POOL, *pools], **changes)
    return {each.pool: each.fate for each in found.pools}


@pytest.mark.parametrize(
    ("then", "what"),
    [
        ("1.35", r"the file has 1\.35 already; write 1\.36"),
        ("1.34", r"1\.34 is older than the file's 1\.35.*write 1\.36"),
        ("1.34", r"write 1\.36; within 7 days of an upgrade.*--kubernetes-version 1\.34`"),
        ("1.37", r"1\.37 is 2 minors from 1\.35.*write 1\.36 first"),
        *((then, rf"got '{then}'; write a Kubernetes minor") for then in ("36", "1.x", "1.³")),
        ("1.036", r"got '1\.036'; write a Kubernetes minor"),
    ],
)
def test_eks_takes_the_next_minor_alone(then: str, what: str) -> None:
    with pytest.raises(QuestionError, match=what):
        upgraded(then)


def test_a_cluster_without_what_is_too_old_may_be_upgraded() -> None:
    found = upgraded()
    image = {each.pool: each.images for each in found.pools}["system"]
    assert found.blockers == ()
    assert all(each.state != "blocks" for each in found.versions)
    assert {e.name: e.then for e in found.versions}["kube-proxy"].startswith("v1.36.")
    assert [each[:5] for each in image] == ["1.35.", "1.36."]
    assert {*eks.SUPPORTED_VERSIONS} <= upgrades.STANDARD_SUPPORT_ENDS.keys()


def test_volcano_keeps_a_cluster_from_a_minor_that_it_is_not_built_for() -> None:
    found = upgraded(scheduling={"queueing": "volcano"})

    assert found.blockers == (
        "kubernetes.version: later than Volcano supports, got '1.36'; use 1.35",
    )
    assert {each.name: each.state for each in found.versions}["Volcano"] == "blocks"


def test_kueue_and_jobset_stay_up_to_the_minor_that_they_were_tested_with() -> None:
    found = {each.name: each for each in upgraded(scheduling={"queueing": "kueue"}).versions}

    assert {found[name].state for name in ("Kueue", "JobSet")} == {"stays"}
    assert found["Kueue"].note == "up to Kubernetes 1.36"
    # It installs their charts.
    assert "Helm of the deploy" in found


def test_karpenter_that_is_too_old_for_the_minor_is_upgraded_first() -> None:
    pool = KARPENTER_POOL | {"instance_types": ["m7g.8xlarge"]}

    found = upgraded(pools=[SYSTEM_POOL, pool], karpenter={"version": "1.11.0"})

    assert found.blockers == (
        "karpenter.version: too old for Kubernetes 1.36, got '1.11.0'; use 1.13.0 or later",
    )


def test_what_check_has_no_rule_for_blocks_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrades, "KUBECTL_VERSION", "1.34")

    found = upgraded()

    assert found.blockers == (
        "kubectl of the deploy 1.34: may be one minor away from the cluster's",
    )
    assert found.steps == ()


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_what_blocks_is_never_left_out_of_the_blockers(file: Path) -> None:
    found = plan_upgrade(config.load(file), "1.36", {}, file="c.yaml")

    assert found.blockers or all(each.state != "blocks" for each in found.versions)


def test_a_minor_that_nothing_is_pinned_for_is_no_upgrade() -> None:
    found = upgraded("1.37", kubernetes={"version": "1.36"})

    assert "not a Kubernetes version this product supports" in found.blockers[0]
    assert {e.name: e.state for e in found.versions}["kube-proxy"] == "blocks"
    assert found.support[1].standard_ends is None
    assert "when EKS's standard support of 1.37 ends" in found.unknown


def test_a_version_of_an_addon_that_the_file_keeps_is_not_said_to_work() -> None:
    own = {"addons": {"coredns": "v1.13.2-eksbuild.31"}}

    upgrade = upgraded(kubernetes=own)

    found = {each.name: each for each in upgrade.versions}["coredns"]
    assert (found.state, found.then) == ("unknown", "v1.13.2-eksbuild.31")
    assert "describe-addon-versions --addon-name coredns --kubernetes-version 1.36" in found.note
    assert any("coredns v1.13.2-eksbuild.31 works with 1.36" in each for each in upgrade.unknown)


def test_everything_that_is_built_for_a_minor_is_said_to_change() -> None:
    found = upgraded(
        pools=[SYSTEM_POOL, NEURON_POOL], scheduling={"neuron_scheduler_extension": True}
    )

    now, then = {e.name: (e.now, e.then) for e in found.versions}["scheduler of Neuron devices"]
    assert now.startswith("v1.35.")
    assert then.startswith("v1.36.")


def test_what_applies_manifests_is_the_kubectl_that_the_catalog_knows() -> None:
    layer = (ROOT / "constructs/ultrascale_constructs/platform.py").read_text()

    assert f"kubectl.KubectlV{upgrades.minor(upgrades.KUBECTL_VERSION)}Layer(" in layer


def test_what_extended_support_costs_and_until_when_is_said() -> None:
    now, then = upgraded().support

    assert (now.version, now.standard_ends) == ("1.35", date(2027, 3, 27))
    assert (now.extended_ends, now.extended_usd_per_hour) == (date(2028, 3, 27), 0.5)
    assert then.standard_ends == date(2027, 8, 2)


def test_manifests_that_the_minor_no_longer_serves_are_named_with_what_to_write() -> None:
    old = {"apiVersion": "storage.k8s.io/v1alpha1", "kind": "VolumeAttributesClass"}
    served = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "training"}}
    objects = {"dist/a.k8s.yaml": [served, old | {"metadata": {"name": "fast"}}]}
    cluster = loads_own(as_text(make_document()))
    assert plan_upgrade(cluster, "1.36", objects, file="c.yaml").blockers == (
        "dist/a.k8s.yaml: VolumeAttributesClass fast: storage.k8s.io/v1alpha1 is gone since 1.35; "
        "write storage.k8s.io/v1",
    )


@pytest.mark.parametrize("api", upgrades.REMOVED_APIS, ids=lambda a: f"{a.minor}-{a.api_version}")
def test_removed_apis_are_those_that_the_published_api_lost_with_that_minor(
    api: upgrades.RemovedApi,
) -> None:
    before = f"1.{upgrades.minor(api.minor) - 1}"

    for kind in api.kinds:
        assert is_described(before, api.api_version, kind)
        assert not is_described(api.minor, api.api_version, kind)
        assert is_described(api.minor, api.instead, kind)


@pytest.mark.parametrize("minor", ["1.34", "1.35", "1.36", "1.37"])
def test_no_api_that_a_minor_lost_is_left_out(minor: str) -> None:
    before = f"1.{upgrades.minor(minor) - 1}"
    lost = {
        name
        for name in files_of(before) - files_of(minor)
        if {"apiVersion", "kind", "metadata"}
        <= json.loads((folder_of(before) / name).read_text()).get("properties", {}).keys()
    }
    known = {
        file_of(each.api_version, f"{kind}{suffix}")
        for each in upgrades.REMOVED_APIS
        if each.minor == minor
        for kind in each.kinds
        for suffix in ("", "List")
    }

    assert lost == known


def folder_of(minor: str) -> Path:
    folder = Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema"
    return folder / f"v{minor}.0-local"


@cache
def files_of(minor: str) -> frozenset[str]:
    return frozenset(each.name for each in folder_of(minor).glob("*-*.json"))


def file_of(api_version: str, kind: str) -> str:
    group, _, version = api_version.partition("/")
    return f"{kind.lower()}-{group.partition('.')[0]}-{version}.json"


def is_described(minor: str, api_version: str, kind: str) -> bool:
    return file_of(api_version, kind) in files_of(minor)


# --- whose nodes go -----------------------------------------------------------------------------


def test_groups_whose_jobs_a_roll_would_break_off_have_to_be_empty_first() -> None:
    block = POOL | {"name": "block", "purchase": CAPACITY_BLOCK}
    other = ODCR | {"reservation": "cr-0123456789abcdef1"}
    reserved = POOL | {"name": "reserved", "purchase": other}
    assert fates(block, reserved, POOL) == {
        "system": "rolls",
        "block": "empty first",
        "reserved": "empty first",
        # It has EFA interfaces.
        "train": "empty first",
    }
    # Nodes without a job over all of them are rolled by the deploy.
    assert fates(POOL | {"instance_types": ["m7g.8xlarge"]})["train"] == "rolls"
    # Self-managed ones stay until somebody renews them.
    assert fates(POOL | {"provisioner": "self-managed"})["train"] == "new nodes only"


def test_nodes_that_karpenter_launched_drift_and_reserved_ones_stay() -> None:
    static = KARPENTER_POOL | {"role": "reserved", "purchase": CAPACITY_BLOCK}
    static |= {"nodes": {"static": 4}}
    cpu = KARPENTER_POOL | {"name": "cpu", "instance_types": ["m7g.8xlarge"]}
    found = upgraded(pools=[SYSTEM_POOL, static, cpu], karpenter={"version": "1.15.2"}).pools
    train, drifting = ({each.pool: each for each in found}[name] for name in ("train", "cpu"))
    assert (train.most, train.fate) == (4, "kept")
    assert "`ultrascale roll`" in train.how
    assert drifting.fate == "drifts"
    assert drifting.how.startswith("10% of the nodes at a time")


@pytest.mark.parametrize(
    ("pool", "emptied", "filled"),
    [
        (
            {"purchase": CAPACITY_BLOCK},
            "once the jobs of train are done",
            "`ultrascale status c.yaml --pools`: inside its block's window the deploy fills train",
        ),
        (
            {"purchase": ODCR | {"reservation": "cr-0123456789abcdef1"}},
            "once the jobs of train are done",
            "`ultrascale scale c.yaml train 16`: no deploy does it; its reservation is paid",
        ),
        (
            {"nodes": {"min": 2, "max": 4}},
            "suspend the jobs of train, for which it would grow again",
            "`ultrascale scale c.yaml train 2`: its minimum was 0",
        ),
        (
            {"nodes": {"min": 0, "max": 4}},
            "suspend the jobs of train, for which it would grow again",
            "resume the jobs of train",
        ),
    ],
    ids=["block", "reservation", "scales with a minimum", "scales from none"],
)
def test_a_group_that_is_emptied_gets_its_nodes_back(
    pool: dict[str, Any], emptied: str, filled: str
) -> None:
    steps = upgraded(pools=[SYSTEM_POOL, POOL | pool]).steps

    (empty,) = (n for n, step in enumerate(steps) if "`ultrascale scale c.yaml train 0`" in step)
    (deploy,) = (n for n, step in enumerate(steps) if step.startswith("`ultrascale deploy c.yaml`"))
    (fill,) = (n for n, step in enumerate(steps) if step.startswith(filled))
    assert steps[empty].startswith(emptied)
    assert empty < deploy < fill


def test_what_only_the_account_knows_is_asked_before_anything_is_changed() -> None:
    nodes, file = upgraded().steps[:2]

    assert nodes == "`kubectl get nodes`: none older than v1.33"
    assert "`ultrascale preflight c.yaml`: it asks for EKS's upgrade insights" in file


def test_nodes_are_renewed_at_once_where_nobody_can_take_their_capacity() -> None:
    own = POOL | {"provisioner": "self-managed"}
    block = own | {"name": "block", "purchase": CAPACITY_BLOCK}

    steps = upgraded(pools=[SYSTEM_POOL, own, block]).steps

    assert "between two jobs: `ultrascale roll c.yaml block --batch 16`" in steps
    assert any(each.startswith("`ultrascale roll c.yaml train --batch 1`: ") for each in steps)


def test_hyperpod_is_renewed_between_jobs_for_it_drains_none() -> None:
    plan = load(ROOT / "clusters" / "hybrid-hyperpod.yaml")
    pools = pool_upgrades(plan.nodes, plan.all_pools, "1.36")

    last = upgrade_steps(plan, pools, then="1.36", file="c.yaml")[-1]

    assert "drains no pods" in {each.pool: each.how for each in pools}["hyperpod"]
    assert last.startswith("once no job runs on HyperPod: `aws sagemaker update-cluster-software")


def test_no_manifest_of_ours_is_of_an_api_that_any_known_minor_lacks(trainium: "Assembly") -> None:
    gone = {(a.api_version, kind) for a in upgrades.REMOVED_APIS for kind in a.kinds}

    ours = {(m["apiVersion"], m["kind"]) for chart in trainium.charts.values() for m in chart}

    assert not ours & gone
