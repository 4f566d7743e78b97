"""The tier of the control plane that holds a fleet."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.folders import ROOT
from tests.support.needs import KARPENTER, POD_RANGES, needs, planned
from tests.support.pools import ODCR, ON_DEMAND, make_document, pool_document
from ultrascale.catalog import eks
from ultrascale.catalog.recorded import VersionFacts
from ultrascale.plan import load
from ultrascale.plan.model import AgreedLimit, ControlPlaneNeeds, Figure
from ultrascale.plan.needs.control_plane import daemon_sets, daemons_on, lacks
from ultrascale.plan.needs.report import plan_needs

FLEET = {"option": "odcr", "reservation_tags": {"fleet": "trn2"}}


def asked(nodes: int, tier: str = "standard", **changes: Any) -> ControlPlaneNeeds:
    """Return what a static fleet of ``nodes``, and four system nodes, asks of ``tier``."""
    pool = pool_document(
        instance_types=["trn1.32xlarge"],
        purchase=FLEET,
        provisioner="karpenter",
        role="reserved",
        nodes={"static": nodes},
    )
    kubernetes = make_document()["kubernetes"] | {"control_plane_tier": tier, **changes}
    found = needs(pool, karpenter=KARPENTER, network=POD_RANGES, kubernetes=kubernetes)
    return found.control_plane


def number(found: ControlPlaneNeeds, key: str) -> float:
    value = found.figures[key].value
    assert value is not None
    return value


def wanted(**changes: float) -> dict[str, Figure]:
    """Return figures that any tier holds, but for ``changes``."""
    keys = {"nodes": 1, "pods": 1, "database": 1, "pods_per_second": 1, "write_seats": 1, **changes}
    return {key: Figure(id=key, value=value, unit="", formula="") for key, value in keys.items()}


@pytest.mark.parametrize(
    ("nodes", "tier", "state", "smallest"),
    [
        (100, "standard", "within", "standard"),
        (4_996, "standard", "within", "standard"),
        (4_997, "standard", "ask", "tier-xl"),
        (20_000, "8xl", "within", "tier-xl"),
        (20_000, "xl", "within", "tier-xl"),
        (90_000, "8xl", "beyond", None),
    ],
)
def test_the_smallest_tier_that_holds_a_fleet_is_named(
    nodes: int, tier: str, state: str, smallest: str | None
) -> None:
    found = asked(nodes, tier)

    assert (found.state, found.smallest) == (state, smallest)
    assert (found.advice is None) == (state == "within")


def test_what_no_tier_holds_is_for_the_account_team_or_for_several_clusters() -> None:
    advice = asked(90_000, "8xl").advice or ""
    assert "ask your account team for tier-ultra" in advice
    assert "divide the nodes among 2 clusters" in advice
    small = asked(6_000).advice or ""
    assert "write kubernetes.control_plane_tier: xl or larger" in small


@pytest.mark.parametrize(
    ("tier", "changes", "why"),
    [
        ("standard", {"database": 8}, None),
        ("standard", {"database": 8.1}, "8.1 GB of objects do not fit in its database of 8 GB"),
        ("standard", {"pods": 150_001}, "Kubernetes by itself is built for"),
        ("standard", {"pods_per_second": 10_000}, None),
        ("tier-xl", {"nodes": 50_000, "pods_per_second": 167}, None),
        ("tier-xl", {"pods_per_second": 168}, "it schedules 167 pods a second"),
        ("tier-xl", {"write_seats": 2_001}, "it works on 2,000 requests at a time"),
        ("tier-8xl", {"write_seats": 16_000, "pods_per_second": 400, "database": 16}, None),
        ("tier-8xl", {"database": 16.01}, "do not fit in its database of 16 GB"),
    ],
)
def test_each_limit_of_a_tier_is_held_against_what_it_limits(
    tier: str, changes: dict[str, float], why: str | None
) -> None:
    found = lacks(tier, VersionFacts(), wanted(**changes))

    assert (found is None) == (why is None)
    assert why is None or why in (found or "")


def test_the_database_is_the_sum_of_what_is_stored() -> None:
    found = asked(1_000)

    parts = {key: number(found, key) for key in found.figures if key.startswith("database.")}

    assert parts["database.nodes"] == pytest.approx(1_004 * 50_000 / 1e9)
    assert parts["database.leases"] == pytest.approx(1_004 * 30 * 500 / 1e9)
    assert parts["database.node_claims"] == pytest.approx(1_000 * 5_000 / 1e9)
    assert parts["database.job_pods"] == pytest.approx(1_000 * 50_000 / 1e9)
    assert number(found, "database") == pytest.approx(sum(parts.values()))
    daemons = parts["database.daemon_pods"] * 1e9 / 14_000
    assert number(found, "pods") == pytest.approx(daemons + 1_000)
    more = number(found, "pods_most") - number(found, "pods")
    full = number(found, "database") + more * 50_300 / 1e9
    assert number(found, "database_most") == pytest.approx(full)


def test_events_are_those_of_pods_that_the_tier_schedules_while_they_are_kept() -> None:
    """A fleet is launched once: with a shorter time to live fewer of its events are there."""
    long, short = (asked(20_000, "xl", event_ttl=ttl) for ttl in ("60m", "10m"))

    events = 167 * 600 * 5
    assert number(short, "database.events") == pytest.approx(events * 1_000 / 1e9)
    pods = number(long, "pods")
    assert number(long, "database.events") == pytest.approx(pods * 5 * 1_000 / 1e9)
    assert pods < 167 * 3_600


def test_a_lease_for_each_node_is_written_every_ten_seconds() -> None:
    """At 100,000 nodes 10,000 writes a second."""
    found = asked(99_996, "8xl")

    assert number(found, "leases_per_second") == 10_000
    assert number(found, "pods_per_second") == pytest.approx(100_000 / 300)
    writes = 10_000 + 100_000 / 300 + 5 * 100_000 / 300
    assert number(found, "write_seats") == pytest.approx(writes * 0.015)


def test_the_fleet_that_aws_measured_needs_no_more_than_aws_gave_it() -> None:
    """100,000 nodes and 900,000 pods took at most 32 GB: far less here would be no estimate."""
    found = asked(99_996, "8xl")

    a_pod = number(found, "database.daemon_pods") / (number(found, "pods") - 99_996)
    same_pods = number(found, "database") + (900_000 - number(found, "pods")) * a_pod
    assert 16 < same_pods < 32


def test_a_standard_control_plane_has_no_limits_to_show_but_one() -> None:
    found = asked(10)

    assert found.figures["tier_pods_per_second"].value is None
    assert found.figures["tier_api_seats"].value is None
    assert found.figures["tier_database"].value == eks.STANDARD_DATABASE_GB


def test_nodes_of_auto_mode_run_fewer_pods_of_their_own() -> None:
    """Programs that EKS runs on the node itself are no pods of the cluster."""
    few = {"max": 2}
    auto_mode = {"provisioner": "auto-mode", "purchase": ON_DEMAND, "nodes": few}
    plan = planned(
        pool_document(name="own", purchase=ODCR, nodes=few),
        pool_document(name="auto", **auto_mode),
    )
    own, auto = (daemons_on(pool, daemon_sets(plan)) for pool in plan.pools)
    assert own >= auto + 4


def test_the_name_cache_of_a_node_is_one_of_its_pods() -> None:
    def daemons(nodes: int) -> int:
        pool = pool_document(provisioner="karpenter", purchase=ODCR, nodes={"max": nodes})
        plan = planned(pool, karpenter=KARPENTER, network=POD_RANGES)
        return daemons_on(plan.pools[0], daemon_sets(plan))

    assert daemons(1_100) == daemons(2) + 1


@pytest.mark.parametrize(
    ("granted", "state", "verdict"), [(30, "within", "raise"), (20, "beyond", "beyond")]
)
def test_a_cluster_fits_its_tier_once_aws_grants_the_database_that_it_needs(
    granted: int, state: str, verdict: str
) -> None:
    limits = {"L-BB24F6E5": 2_000_000, "pods": 900_000, "database": granted}
    agreed = (AgreedLimit(code=code, value=n, reference="case 19") for code, n in limits.items())
    ultra = load(ROOT / "clusters" / "ultra-100k.yaml")
    found = plan_needs(replace(ultra, agreed_limits=(*agreed,)))
    assert (found.control_plane.state, found.answer.verdict) == (state, verdict)
    assert any("tier-8xl" in why for why in found.answer.why)
