"""Cluster files that are accepted without a warning."""

from typing import Any

import pytest

from tests.support.cases import for_each
from tests.support.config_documents import KARPENTER, TWO_ZONES
from tests.support.pools import (
    CAPACITY_BLOCK,
    ODCR,
    SPOT,
    SYSTEM_POOL,
    make_cluster,
    make_document,
    pool_document,
)
from tests.support.verdicts import warned_of
from ultrascale import config

DAYS_21 = {"starts": "2026-12-01T11:30:00Z", "ends": "2026-12-22T11:30:00Z"}
DAYS_28 = {"starts": "2026-12-01T11:30:00Z", "ends": "2026-12-29T11:30:00Z"}


@pytest.mark.parametrize(
    "changes",
    [
        {"provisioner": "auto-mode", "purchase": CAPACITY_BLOCK | DAYS_21},
        {"purchase": CAPACITY_BLOCK | DAYS_28},
        {"purchase": ODCR},
        {"placement_group": True},
        {"provisioner": "auto-mode", "purchase": SPOT, "efa": "none"},
        {"provisioner": "auto-mode", "purchase": SPOT, "zones": TWO_ZONES, "efa": "none"},
        {"provisioner": "auto-mode", "purchase": SPOT, "instance_types": ["g5.xlarge"]},
        {"instance_types": ["m7g.8xlarge", "m8g.8xlarge"]},
        {"instance_types": ["m7g.8xlarge", "m7g.16xlarge"], "nodes": {"static": 4}},
        {"instance_types": ["m7g.8xlarge", "m7g.16xlarge"], "provisioner": "auto-mode"},
        {
            "instance_types": ["m7g.8xlarge", "m7g.16xlarge"],
            "purchase": {
                "option": "odcr",
                "resource_group": "arn:aws:resource-groups:us-west-2:111122223333:group/g",
            },
        },
    ],
    ids=[
        *("21 days", "node group", "ODCR", "group", "no EFA", "two zones", "no EFA cards"),
        *("types of one size", "unlike types that stay", "unlike types of Auto Mode"),
        "unlike types of a reservation",
    ],
)
def test_what_is_meant_is_not_warned_of(changes: dict[str, Any]) -> None:
    told = {"alarms": {"email": "ops@example.com"}}
    cluster = make_cluster(pools=[SYSTEM_POOL, pool_document(**changes)], observability=told)

    assert config.warnings(cluster) == ()


def test_an_existing_file_system_beside_a_vpc_that_is_made_is_told() -> None:
    ids = {"id": "fs-0a1b2c3d4e5f60001", "mount_name": "abc", "security_group": "sg-0a1b2c3d"}
    lustre = [{"name": "data", "zone": "us-west-2b", "existing": ids}]

    assert warned_of(make_cluster(storage={"lustre": lustre})) == [
        "warning storage.lustre[data].existing.id: file_system_is_of_another_vpc"
    ]


def test_pools_with_and_without_efa_get_along_where_their_types_or_taints_differ() -> None:
    efa = pool_document()
    other = pool_document(name="g", instance_types=["g5.xlarge"], efa="none")
    cpu = pool_document(name="cpu", instance_types=["m7g.2xlarge"])
    own = pool_document(name="own", efa="none", taints=[{"key": "team", "value": "vision"}])

    assert config.warnings(make_cluster(pools=[SYSTEM_POOL, efa, other, cpu, own])) == ()


def test_pods_of_an_efa_pool_do_not_get_onto_spot_nodes_that_they_do_not_tolerate() -> None:
    spot = pool_document(
        name="spot", provisioner="karpenter", purchase={"option": "spot"}, efa="none"
    )
    cluster = make_cluster(pools=[SYSTEM_POOL, pool_document(), spot], karpenter=KARPENTER)

    assert not [line for line in warned_of(cluster) if line.endswith(": jobs_without_efa")]


def test_a_reservation_that_karpenter_shares_out_is_not_warned_of() -> None:
    first = pool_document(provisioner="karpenter", purchase=ODCR)
    pools = [SYSTEM_POOL, first, first | {"name": "b"}]

    assert config.warnings(make_cluster(pools=pools, karpenter=KARPENTER)) == ()


def test_a_reservation_that_a_node_group_fills_before_karpenter_gets_to_it_is() -> None:
    second = pool_document(name="b", provisioner="karpenter", purchase=ODCR)
    pools = [SYSTEM_POOL, pool_document(purchase=ODCR), second]

    assert warned_of(make_cluster(pools=pools, karpenter=KARPENTER)) == [
        "warning pools[b].purchase.reservation: reservation_is_filled_twice"
    ]


@pytest.mark.parametrize(("granted", "told"), [(256_000, 1), (256_001, 0)])
def test_an_agreement_on_no_more_than_anybody_gets_is_told(granted: int, told: int) -> None:
    cluster = make_cluster(agreed_limits={"nau_per_vpc": granted, "reference": "case 1"})

    found = [line for line in warned_of(cluster) if line.endswith(": agreed_already")]

    assert len(found) == told


@for_each(
    {
        "the newest": ("1.15.2", 0),
        "the one that is kept up for long": ("1.14.3", 0),
        "one that nobody has read": ("1.14.0", 1),
        "one to come": ("1.16.0", 1),
    }
)
def test_a_karpenter_that_nobody_has_read_is_told(version: str, told: int) -> None:
    pool = pool_document(provisioner="karpenter")
    cluster = make_cluster(pools=[SYSTEM_POOL, pool], karpenter={"version": version})

    lines = [line for line in config.warnings(cluster) if line.startswith("karpenter.version")]

    assert len(lines) == told
    assert all("1.15.2" in line and "1.14.3" in line for line in lines)


@for_each(
    {
        "a training plan": (
            {
                "provisioner": "hyperpod",
                "purchase": {
                    "option": "training-plan",
                    "plan": "arn:aws:sagemaker:us-west-2:111122223333:training-plan/p",
                    "starts": "2026-12-01T11:30:00Z",
                    "ends": "2026-12-08T11:30:00Z",
                },
                "nodes": {"static": 4},
            },
            "$220 for each hour of it (4 x $55.04",
        ),
        "a type without a price": (
            {
                "instance_types": ["p5e.48xlarge"],
                "purchase": {
                    "option": "capacity-block",
                    "reservation": "cr-0feedfeedfeedfee1",
                    "starts": "2026-12-01T11:30:00Z",
                    "ends": "2026-12-08T11:30:00Z",
                },
            },
            "16 node-hours of p5e.48xlarge for each hour of it; the catalog has no price",
        ),
    }
)
def test_a_window_whose_end_nobody_hears_of_is_priced(changes: dict[str, Any], told: str) -> None:
    cluster = make_cluster(pools=[SYSTEM_POOL, pool_document(**changes)])

    assert told in "\n".join(config.warnings(cluster))


@pytest.mark.parametrize(("egress", "told"), [("none", 1), ("nat", 0)])
def test_keys_of_an_issuer_that_a_closed_vpc_does_not_reach_are_told(
    egress: str, told: int
) -> None:
    """The front answers every request with 401 then."""
    jwt = {
        "issuer": "https://login.example.com",
        "audiences": ["models"],
        "jwks_uri": "https://login.example.com/keys",
    }
    cluster = make_cluster(
        serving={"front": {"jwt": jwt}},
        network=make_document()["network"] | {"egress": egress},
        images={"mirror": "registry.example.com/mirror"},
    )

    rule = ": keys_of_the_issuer_are_out_of_reach"
    assert len([each for each in warned_of(cluster) if each.endswith(rule)]) == told


@pytest.mark.parametrize(("namespace", "warned"), [("training", True), ("web", False)])
def test_a_right_that_pods_of_jobs_have_too_is_warned_of(namespace: str, warned: bool) -> None:
    """Whatever runs in a job could submit more jobs, which are paid for."""
    caller = f"system:serviceaccounts:{namespace}"
    rights: dict[str, Any] = {caller: {}}
    identity = {"admins": ["system:serviceaccounts:backend"], "rights": rights}
    cluster = make_cluster(
        jobs={"tune": {"node_selector": {"node-type": "train"}}},
        backend={
            **{"database": {"version": "17"}, "submits_to": ["tune"], "identity": identity},
            "allow_from": ["web", "training"],
        },
    )

    keyed = [line for line in config.warnings(cluster) if "backend.identity.rights" in line]

    assert [caller in line for line in keyed] == [True] * warned
