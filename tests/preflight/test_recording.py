"""Answers of the account that differ from the catalog go into the file, and count from then on."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from tests.preflight.test_network_cards import changed, recorded_types
from tests.support.account import connects
from tests.support.command_line import Ultrascale
from tests.support.pools import POOL, SYSTEM_POOL, as_text, make_document
from tests.support.preflight_context import NOW, found, make_context, pools_plan
from tests.support.verdicts import verdicts
from ultrascale import catalog, config, plan
from ultrascale.catalog import addons
from ultrascale.errors import ConfigError
from ultrascale.plan.jobs.nodes import whole_share
from ultrascale.plan.needs.report import plan_needs
from ultrascale.preflight import checks, read_context
from ultrascale.preflight.recording import (
    RECORDED_FACTS,
    addon_rows,
    rows_of_type,
    version_rows,
)

TRN2U = "trn2u.48xlarge"
TIERS = "eks:DescribeClusterVersions"
BUILD = "v9.9.9-eksbuild.9"
ULTRA = POOL | {"name": "ultra", "instance_types": [TRN2U], "zones": ["us-west-2a"]}


def planned(*facts: dict[str, Any], **changes: Any) -> plan.ClusterPlan:
    document = make_document(**changes) | {"facts": [*facts]}
    return plan.plan_cluster(config.loads(as_text(document)))


def fact(kind: str, of: str, value: object, **keys: str) -> dict[str, Any]:
    return {"fact": kind, "of": of, "value": value, "seen": "2026-11-21", **keys}


def rows(name: str, answer: dict[str, Any]) -> dict[str, Any]:
    found = {str(row["fact"]): row for row in rows_of_type(cast("Any", answer))}
    assert all(row["of"] == name for row in found.values())
    return {kind: row["value"] for kind, row in found.items()}


# --- rows ---------------------------------------------------------------------------------------


def test_what_the_catalog_knows_is_not_recorded() -> None:
    known = {
        name: answer
        for name, answer in recorded_types().items()
        if name in catalog.INSTANCE_TYPES and catalog.lookup(name).knows("enis_card0")
    }
    assert len(known) > 150
    assert {name: each for name, answer in known.items() if (each := rows(name, answer))} == {}


@pytest.mark.parametrize(
    ("path", "value", "row"),
    [
        ("MemoryInfo.SizeInMiB", 9, ("hardware", {"memory_mib": 9})),
        ("GpuInfo.Gpus.0.Count", 4, ("hardware", {"accelerator_count": 4})),
        ("GpuInfo.TotalGpuMemoryInMiB", 7, ("hardware", {"accelerator_memory_mib_total": 7})),
        ("NetworkInfo.NetworkCards.0.InterfaceTypes", None, None),
    ],
)
def test_a_number_that_ec2_has_otherwise_is_a_row(path: str, value: Any, row: Any) -> None:
    found = rows("p5.48xlarge", changed("p5.48xlarge", path, value))
    assert [*found.items()] == ([row] if row else [])


def version_answer(**tier: int) -> dict[str, Any]:
    limits = {"apiRequestConcurrency": 8000, "podSchedulingRatePerSecond": 400}
    offer = {"tierName": "tier-4xl", "clusterDatabaseSizeGb": 16, **limits, **tier}
    return {"clusterVersion": "1.35", "controlPlaneScalingTiers": [offer]}


def test_limits_and_ends_that_eks_says_otherwise_are_rows_of_their_minor() -> None:
    ends = datetime(2027, 3, 27, tzinfo=UTC)
    same = version_answer() | {"endOfStandardSupportDate": ends}
    later = same | {"endOfStandardSupportDate": ends + timedelta(days=5)}
    partial = version_answer(clusterDatabaseSizeGb=20)
    del partial["controlPlaneScalingTiers"][0]["apiRequestConcurrency"]

    def told(answer: dict[str, Any]) -> list[object]:
        context, _ = make_context(pools_plan(), {TIERS: {"clusterVersions": [answer]}})
        return [*version_rows(context.account, "1.35")]

    value = {"api_seats": 9000, "pods_per_second": 400, "database_gb": 16}
    assert told(version_answer(apiRequestConcurrency=9000)) == [
        {"fact": "tier", "of": "tier-4xl", "kubernetes": "1.35", "value": value}
    ]
    row = {"fact": "end-of-support", "of": "1.35", "value": date(2027, 4, 1)}
    assert [told(same), told(partial), told(later)] == [[], [], [row]]


def test_the_newest_build_that_suits_the_cluster_is_recorded() -> None:
    cluster = pools_plan()
    names = ["v0.0.1-eksbuild.1", "v1.99.0-eksbuild.1"]
    fits = [{"clusterVersion": "1.35"}]

    def offers(asked: dict[str, Any]) -> dict[str, Any]:
        own = [BUILD] if asked["addonName"] == "coredns" else []
        builds = [{"addonVersion": name, "compatibilities": fits} for name in (*own, *names[:1])]
        return {"addons": [{"addonName": asked["addonName"], "addonVersions": builds}]}

    context, _ = make_context(cluster, {"eks:DescribeAddonVersions": offers})
    found = {row["of"]: row["value"] for row in addon_rows(context.account, cluster.addons, "1.35")}
    assert found["coredns"] == BUILD
    # Builds below its floor, or of another Kubernetes than the cluster's, are passed over.
    assert "kube-proxy" not in found


# --- what counts --------------------------------------------------------------------------------


def test_a_type_without_cards_is_refused_until_they_are_recorded() -> None:
    pools = [SYSTEM_POOL, ULTRA]
    with pytest.raises(ConfigError) as refused:
        planned(pools=pools)
    assert verdicts(refused.value) == ["pools[ultra].instance_types: facts_are_known"]

    cards = fact("network-cards", TRN2U, rows(TRN2U, recorded_types()[TRN2U])["network-cards"])
    (pool,) = planned(cards, pools=pools).pools
    with pytest.raises(ConfigError) as refused:
        planned(cards, pools=pools, colour="red")
    assert verdicts(refused.value) == ["colour: form"]

    assert pool.efa_interfaces == 16
    assert {nic.card for nic in pool.network_interfaces} == {*range(16)}


def test_each_kind_of_fact_changes_the_plan_and_says_where_it_is_from() -> None:
    amounts = {"millicpu": 150_001, "memory_mib": 1 << 20}
    tier = {"api_seats": 9_000, "pods_per_second": 500, "database_gb": 20}
    of_1_35 = {"kubernetes": "1.35"}
    facts = {
        "tier": fact("tier", "tier-4xl", tier, **of_1_35),
        "hardware": fact("hardware", "p5.48xlarge", {"memory_mib": 9_000_000}),
        "network-cards": fact(
            "network-cards",
            "p5.48xlarge",
            [{"card": 0, "types": ["interface", "efa-only"], "interfaces": 2}],
        ),
        "end-of-support": fact("end-of-support", "1.35", "2027-04-01"),
        "addon-build": fact("addon-build", "coredns", BUILD, **of_1_35),
        "allocatable": fact("allocatable", "p5.48xlarge", amounts),
        "start-time": fact("start-time", "train", 77),
    }
    pools = [SYSTEM_POOL, POOL | {"name": "train"}]
    kubernetes = {"control_plane_tier": "4xl"}

    def cluster(*names: str) -> plan.ClusterPlan:
        own = [facts[name] for name in names]
        return planned(*own, pools=pools, kubernetes=kubernetes)

    def seen(of: plan.ClusterPlan) -> dict[str, Any]:
        train = of.pools[0]
        limits = plan_needs(of).control_plane.figures["tier_api_seats"]
        builds = {addon.name: addon.version for addon in of.addons}
        return {
            "tier": (limits.value, limits.sources),
            "hardware": train.specs[0].memory_mib,
            "network-cards": train.efa_interfaces,
            "end-of-support": of.control_plane.facts.support_ends["1.35"],
            "addon-build": builds["coredns"],
            "allocatable": whole_share(train, "p5.48xlarge").millicpu,
            "start-time": train.recorded.start_seconds,
        }

    before, after = seen(cluster()), seen(cluster(*facts))

    assert {kind for kind in facts if before[kind] != after[kind]} == facts.keys()
    assert after["tier"] == (9_000, ("EKS's answer of 2026-11-21, recorded in `facts`",))
    assert after["network-cards"] == 1
    (_, said) = plan_needs(cluster(*facts)).answer.why
    assert said == "7 recorded facts count for the catalog's"
    assert after["allocatable"] < before["allocatable"]
    for kind in facts:
        alone = seen(cluster(kind))
        assert {other for other in facts if alone[other] != before[other]} == {kind}


def test_a_stated_build_counts_before_a_recorded_one() -> None:
    own = addons.version("coredns", "1.35").version
    row = fact("addon-build", "coredns", BUILD, kubernetes="1.35")
    cluster = planned(row, kubernetes={"addons": {"coredns": own}})
    assert {addon.version for addon in cluster.addons if addon.name == "coredns"} == {own}


def test_a_fact_of_the_future_is_refused_where_there_is_a_clock(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    row = fact("end-of-support", "1.35", "2027-04-01") | {"seen": "2026-12-01"}
    path.write_text(as_text(make_document() | {"facts": [row]}))
    assert plan.load(path).recorded[0].seen == date(2026, 12, 1)
    with pytest.raises(ConfigError) as refused:
        read_context(path, NOW, None)
    assert "facts[0].seen: future_facts" in verdicts(refused.value)


def test_a_fact_past_its_life_is_told() -> None:
    value = {"api_seats": 1, "pods_per_second": 1, "database_gb": 1}
    cluster = planned(fact("tier", "tier-4xl", value, kubernetes="1.35"))
    (fresh,) = found(RECORDED_FACTS, cluster, at=NOW)
    (old,) = found(RECORDED_FACTS, cluster, at=NOW + timedelta(days=180))
    assert (fresh.state, old.state) == ("pass", "warn")
    assert "tier of tier-4xl, seen 2026-11-21, has expired 2027-05-20" in old.evidence


def described(asked: dict[str, Any]) -> dict[str, Any]:
    assert asked["IncludeUnsupportedInRegion"]
    return {"InstanceTypes": [recorded_types()[name] for name in asked["Filters"][0]["Values"]]}


# --- the command --------------------------------------------------------------------------------


def test_record_writes_what_a_file_without_a_plan_needs_and_keeps_the_rest(
    tmp_path: Path, ultrascale: Ultrascale, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cluster.yaml"
    text = f"# ours\n{yaml.safe_dump(make_document(pools=[SYSTEM_POOL, ULTRA]))}# the end\n"
    path.write_text(text)
    told: dict[str, Any] = {
        TIERS: {"clusterVersions": [version_answer(apiRequestConcurrency=9000)]},
        "ec2:DescribeInstanceTypes": described,
        "eks:DescribeAddonVersions": {"addons": []},
    }
    monkeypatch.setattr(checks, "all_checks", lambda: ())
    aws = connects(monkeypatch, told)

    answer = ultrascale("preflight", str(path), "--record")

    assert "recorded" in answer.stdout
    written = path.read_text()
    assert written.startswith(text)
    facts = yaml.safe_load(written)["facts"]
    assert [(row["fact"], row["of"]) for row in facts] == [
        ("tier", "tier-4xl"),
        ("network-cards", TRN2U),
    ]
    assert plan.load(path).pools[0].efa_interfaces == 16
    assert "ec2:DescribeInstanceTypes" in aws.actions
    again = ultrascale("preflight", str(path), "--record")
    assert "say the same" in again.stdout
    assert path.read_text() == written
    refused = ultrascale("preflight", str(path), "--record", "--at", "2026-12-01T00:00Z")
    assert refused.returncode == ultrascale("preflight", "-", "--record").returncode == 64
