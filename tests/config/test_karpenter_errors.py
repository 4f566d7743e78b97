"""Versions of Karpenter that do not do what the file asks of them."""

from typing import Any

import pytest
import yaml

from tests.support.pools import (
    ODCR,
    SPOT,
    SYSTEM_POOL,
    make_cluster,
    make_document,
    pool_document,
)
from ultrascale import config
from ultrascale.config import karpenter as rules
from ultrascale.config._document import parse_yaml
from ultrascale.config._parts import Placed
from ultrascale.config._reading import read_document
from ultrascale.plan.network.vpc import plan_network
from ultrascale.plan.pools.karpenter import karpenter_has_room
from ultrascale.plan.pools.node_classes import plan_node_class
from ultrascale.plan.pools.pool import plan_pool

RULES = config.Rules(
    rules.karpenter_is_sound,
    rules.karpenter_suits_kubernetes,
    rules.karpenter_suits_its_pools,
    karpenter_has_room,
)
CPU_TYPES = ["m7i.xlarge", "c7i.xlarge"]


def with_karpenter(version: str, *pools: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a cluster file with ``pools`` beside the system pool."""
    changes = {"pools": [SYSTEM_POOL, *pools]} | changes
    return make_document(karpenter={"version": version}, **changes)


def launched(**changes: Any) -> dict[str, Any]:
    """Return a pool that Karpenter launches, as plain as a pool can be, with ``changes``."""
    plain = {"provisioner": "karpenter", "instance_types": CPU_TYPES}
    return pool_document(**(plain | changes))


def lines(document: dict[str, Any]) -> list[str]:
    """Return what the rules find wrong."""
    reading = read_document(parse_yaml(yaml.safe_dump(document, sort_keys=False), source=""))
    return [mistake.line(reading.document) for mistake in reading.judge(RULES)]


OLD = {"kubernetes": {"version": "1.35"}}


@pytest.mark.parametrize(
    "document",
    [
        with_karpenter("1.15.2", launched(instance_types=["p5.48xlarge"], placement_group=True)),
        with_karpenter("1.16.0", launched(purchase=SPOT)),
        with_karpenter("1.9.0", launched(nodes={"static": 4}, role="reserved")),
        with_karpenter("1.11.0", launched(instance_types=["p5.48xlarge"], efa="none")),
        with_karpenter("1.10.0", pool_document(placement_group=True)),
        with_karpenter(
            "1.15.2",
            launched(nodes={"max": 6_000}),
            pools=[
                SYSTEM_POOL,
                SYSTEM_POOL
                | {"name": "large", "role": "system", "instance_types": ["m7g.4xlarge"]},
                launched(nodes={"max": 6_000}),
            ],
        ),
        make_document(),
    ],
    ids=[
        "every feature",
        "a minor to come",
        "first version with static pools",
        "EFA turned off",
        "features of pools that others launch",
        "one system pool of large nodes",
        "no Karpenter",
    ],
)
def test_a_version_that_does_is_taken(document: dict[str, Any]) -> None:
    assert lines(document) == []


def test_two_reasons_against_a_version_are_both_named() -> None:
    found = lines(with_karpenter("1.8.4", launched(instance_types=["p5.48xlarge"])))

    assert [line.split(",")[0] for line in found] == [
        "karpenter.version: a release of Karpenter with a regression",
        "karpenter.version: too old for Kubernetes 1.35",
        "karpenter.version: too old for EFA interfaces",
    ]


def test_a_version_older_than_reservations_is_older_than_kubernetes_too() -> None:
    assert lines(with_karpenter("1.5.4", launched(purchase=ODCR), **OLD)) == [
        "karpenter.version: too old for Kubernetes 1.35, got '1.5.4'; use 1.9.0 or later",
        "karpenter.version: too old for capacity reservations, as in pools[train], got '1.5.4'; "
        "use 1.6.0 or later",
    ]


def test_a_pool_without_a_count_is_another_rules_to_refuse() -> None:
    assert lines(with_karpenter("1.15.2", launched(nodes={}))) == []


ONE_ZONE = ("us-west-2a",)
TWO_ZONES = ("us-west-2a", "us-west-2b")


@pytest.mark.parametrize(
    ("types", "zones", "efa"),
    [
        (("p5.48xlarge",), ONE_ZONE, "auto"),
        (("p5.48xlarge",), ONE_ZONE, "all"),
        (("p5.48xlarge",), ONE_ZONE, "none"),
        (("p5.48xlarge",), TWO_ZONES, "auto"),
        (("g6.12xlarge", "g6.48xlarge"), ONE_ZONE, "auto"),
        (("g6.xlarge",), ONE_ZONE, "auto"),
        (("m8g.48xlarge",), ONE_ZONE, "auto"),
        (("m8g.48xlarge",), ONE_ZONE, "all"),
    ],
)
def test_the_rules_see_interfaces_where_the_plan_lists_them(
    types: tuple[str, ...], zones: tuple[str, ...], efa: str
) -> None:
    changes = {"instance_types": types, "zones": zones, "efa": efa, "provisioner": "karpenter"}
    cluster = make_cluster()
    pool = cluster.pools[-1].model_copy(update=changes)

    plan = plan_pool(pool, kubernetes_version="1.35")
    network = plan_network(cluster)
    planned = bool(plan_node_class(cluster, network, plan, named_by_id=False).network_interfaces)

    old = config.Karpenter(version="1.10.0")
    pools = config.Readable((Placed(("pools", 1), pool),))
    assert any(rules.karpenter_suits_its_pools(old, pools, cluster.network)) is planned


def test_a_controller_that_the_file_sizes_fits_where_ours_does_not() -> None:
    document = with_karpenter("1.15.2", launched(nodes={"max": 6_000}))
    document["karpenter"] |= {"vcpus": 4, "memory_gib": 16}

    assert lines(document) == []
