"""An upgrade of Kubernetes: what it would break is said before anything is deployed."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import kubernetes_validate
import pytest

from tests.assembly import ROOT
from tests.pools import CAPACITY_BLOCK, ODCR, POOL, SYSTEM_POOL, as_text, loads_own, make_document
from ultrascale import config
from ultrascale.catalog import eks, upgrades
from ultrascale.errors import QuestionError
from ultrascale.plan.upgrade import UpgradePlan, plan_upgrade

if TYPE_CHECKING:
    from tests.assembly import Assembly

FILES = sorted((ROOT / "clusters").glob("*.yaml"))
KARPENTER_POOL = POOL | {"provisioner": "karpenter"}


def upgraded(then: str = "1.36", **changes: Any) -> UpgradePlan:
    return plan_upgrade(loads_own(as_text(make_document(**changes))), then, {})


def fates(*pools: dict[str, Any], **changes: Any) -> dict[str, str]:
    found = upgraded(pools=[SYSTEM_POOL, *pools], **changes)
    return {each.pool: each.fate for each in found.pools}


@pytest.mark.parametrize(
    ("then", "what"),
    [
        ("1.35", r"the file has 1\.35 already; write 1\.36"),
        ("1.34", r"1\.34 is older than the file's 1\.35.*write 1\.36"),
        ("1.37", r"1\.37 is 2 minors from 1\.35.*write 1\.36 first"),
        ("36", r"got '36'; write a Kubernetes minor"),
        ("1.x", r"got '1\.x'; write a Kubernetes minor"),
    ],
)
def test_eks_takes_the_next_minor_alone(then: str, what: str) -> None:
    with pytest.raises(QuestionError, match=what):
        upgraded(then)


def test_volcano_keeps_a_cluster_from_a_minor_that_it_is_not_built_for() -> None:
    found = upgraded(scheduling={"gang_scheduler": "volcano"})

    assert found.blockers == (
        "kubernetes.version: later than Volcano supports, got '1.36'; use 1.35",
    )
    assert {each.name: each.state for each in found.versions}["Volcano"] == "blocks"


def test_a_cluster_without_what_is_too_old_may_be_upgraded() -> None:
    found = upgraded()

    assert found.blockers == ()
    assert all(each.state != "blocks" for each in found.versions)
    assert {e.name: e.then for e in found.versions}["kube-proxy"].startswith("v1.36.")


def test_karpenter_that_is_too_old_for_the_minor_is_upgraded_first() -> None:
    pool = KARPENTER_POOL | {"instance_types": ["m7g.8xlarge"]}

    found = upgraded(pools=[SYSTEM_POOL, pool], karpenter={"version": "1.11.0"})

    assert found.blockers == (
        "karpenter.version: too old for Kubernetes 1.36, got '1.11.0'; use 1.13.0 or later",
    )


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_what_blocks_is_never_left_out_of_the_blockers(file: Path) -> None:
    found = plan_upgrade(config.load(file), "1.36", {})

    assert any(each.state == "blocks" for each in found.versions) == bool(found.blockers)


def test_a_minor_that_nothing_is_pinned_for_is_no_upgrade() -> None:
    found = upgraded("1.37", kubernetes={"version": "1.36"})

    assert "not a Kubernetes version this product supports" in found.blockers[0]
    assert {e.name: e.state for e in found.versions}["kube-proxy"] == "blocks"
    assert found.support_ends["1.37"] is None


def test_a_version_of_an_addon_that_the_file_keeps_is_not_said_to_change() -> None:
    own = {"addons": {"coredns": "v1.13.2-eksbuild.31"}}

    found = {each.name: each for each in upgraded(kubernetes=own).versions}["coredns"]

    assert (found.state, found.then) == ("stays", "v1.13.2-eksbuild.31")
    assert "describe-addon-versions --addon-name coredns --kubernetes-version 1.36" in found.note


def test_manifests_that_the_minor_no_longer_serves_are_named_with_what_to_write() -> None:
    old = {
        "apiVersion": "storage.k8s.io/v1alpha1",
        "kind": "VolumeAttributesClass",
        "metadata": {"name": "fast"},
    }
    served = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "training"}}

    found = plan_upgrade(
        loads_own(as_text(make_document())), "1.36", {"dist/a.k8s.yaml": [served, old]}
    )

    assert found.blockers == (
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


def is_described(minor: str, api_version: str, kind: str) -> bool:
    group, _, version = api_version.partition("/")
    folder = Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema"
    name = f"{kind.lower()}-{group.partition('.')[0]}-{version}.json"
    return (folder / f"v{minor}.0-local" / name).is_file()


# --- whose nodes go -----------------------------------------------------------------------------


def test_groups_whose_jobs_a_roll_would_break_off_have_to_be_empty_first() -> None:
    block = POOL | {"name": "block", "purchase": CAPACITY_BLOCK}
    reserved = POOL | {
        "name": "reserved",
        "purchase": ODCR | {"reservation": "cr-0123456789abcdef1"},
    }

    found = fates(block, reserved, POOL)

    assert found == {
        "system": "rolls",
        "block": "empty first",
        "reserved": "empty first",
        # It has EFA interfaces.
        "train": "empty first",
    }


def test_nodes_without_a_job_over_all_of_them_are_rolled_by_the_deploy() -> None:
    cpu = POOL | {"name": "cpu", "instance_types": ["m7g.8xlarge"]}

    assert fates(cpu)["cpu"] == "rolls"


def test_self_managed_nodes_stay_until_somebody_renews_them() -> None:
    assert fates(POOL | {"provisioner": "self-managed"})["train"] == "new nodes only"


def test_nodes_that_karpenter_launched_drift_and_reserved_ones_stay() -> None:
    static = KARPENTER_POOL | {
        "role": "reserved",
        "purchase": CAPACITY_BLOCK,
        "nodes": {"static": 4},
    }
    cpu = KARPENTER_POOL | {"name": "cpu", "instance_types": ["m7g.8xlarge"]}

    found = upgraded(pools=[SYSTEM_POOL, static, cpu], karpenter={"version": "1.15.1"}).pools

    fate = {each.pool: (each.fate, each.how) for each in found}
    assert fate["train"][0] == "kept"
    assert "`ultrascale roll`" in fate["train"][1]
    assert fate["cpu"][0] == "drifts"
    assert fate["cpu"][1].startswith("10% of the nodes at a time")


def test_the_new_release_of_the_image_is_named() -> None:
    image = {each.pool: each.images for each in upgraded().pools}["system"]

    assert image[0].startswith("1.35.")
    assert image[1].startswith("1.36.")


@pytest.mark.parametrize("version", eks.SUPPORTED_VERSIONS)
def test_the_end_of_standard_support_of_each_minor_is_known(version: str) -> None:
    assert version in upgrades.STANDARD_SUPPORT_ENDS


def test_no_manifest_of_ours_is_of_an_api_that_any_known_minor_lacks(trainium: "Assembly") -> None:
    gone = {(a.api_version, kind) for a in upgrades.REMOVED_APIS for kind in a.kinds}

    ours = {(m["apiVersion"], m["kind"]) for chart in trainium.charts.values() for m in chart}

    assert not ours & gone
