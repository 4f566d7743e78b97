"""Mistakes in a VPC that exists: its ranges, its subnets, and what a file says beside them."""

from typing import Any

import pytest

from tests.support.config_documents import mistakes_in
from tests.support.existing_vpc import OWNER, VPC, existing_document, subnet, subnets
from tests.support.pools import POOL, SYSTEM_POOL, as_json, loads_own, make_document

LUSTRE = {
    "name": "a",
    "zone": "us-east-1c",
    "capacity_gib": 4800,
    "throughput_mbps_per_tib": 250,
}
RANGES = ["10.20.0.0/16", "100.64.0.0/16"]
FREE = {key: value for key, value in POOL.items() if key != "zones"}
OURS = {"vpc_cidr": "10.0.0.0/16", "zones": ["us-west-2a", "us-west-2b"]}


def with_subnet(number: int, **keys: Any) -> list[dict[str, Any]]:
    """Return the subnets with ``keys`` of the one at ``number``."""
    return [each | keys if n == number else each for n, each in enumerate(subnets())]


BAD: dict[str, tuple[dict[str, Any], list[str]]] = {
    "neither a range nor a VPC": (
        make_document(network={}),
        [
            "network.vpc_cidr: missing; add it, or name an existing VPC in vpc",
            "network.zones: missing; add it, or name an existing VPC in vpc",
        ],
    ),
    "both": (
        existing_document(
            vpc_cidr="10.0.0.0/16",
            zones=["us-east-1a", "us-east-1b"],
            pod_cidrs=["100.65.0.0/16"],
            flow_logs="s3",
        ),
        [
            "network.vpc_cidr: a key of a VPC of ours, and vpc exists; leave it out",
            "network.zones: a key of a VPC of ours, and vpc exists; leave it out",
            "network.pod_cidrs: a key of a VPC of ours, and vpc exists; leave it out",
            "network.flow_logs: vpc is not ours: its owner makes its flow logs, got 's3'; leave it "
            "out, or write none",
        ],
    ),
    "a VPC without its subnets and its way out": (
        existing_document(subnets=None, egress=None),
        [
            "network.subnets: missing; add it: vpc is a VPC that exists",
            "network.egress: missing; add it: vpc is a VPC that exists",
        ],
    ),
    "subnets without their VPC": (
        make_document(network={**OURS, "subnets": subnets("us-west-2")}),
        [
            "network.subnets: subnets without their VPC; name the VPC in vpc, or leave subnets "
            "out: those of a VPC of ours are made",
        ],
    ),
    "a transit gateway of a VPC of ours": (
        make_document(network={**OURS, "egress": "transit-gateway"}),
        [
            "network.egress: a VPC of ours is attached to no transit gateway, got "
            "'transit-gateway'; write nat or none, or name an existing VPC in vpc",
        ],
    ),
    "subnets of another VPC": (
        existing_document(subnets=with_subnet(2, cidr="10.21.16.0/20")),
        [
            "network.subnets[2].cidr: in no range of network.vpc.cidrs (10.20.0.0/16, "
            "100.64.0.0/16), got '10.21.16.0/20'; write the subnet's range, or add the range of "
            "the VPC",
        ],
    ),
    "a subnet of another Region": (
        existing_document(subnets=with_subnet(3, zone="us-east-2b")),
        [
            "network.subnets[3].zone: not a zone of us-east-1, got 'us-east-2b'; write its name, "
            "such as us-east-1a, or its zone id",
        ],
    ),
    "subnets that overlap": (
        existing_document(subnets=with_subnet(3, cidr="10.20.24.0/21")),
        [
            "network.subnets[3].cidr: overlaps network.subnets[2], 10.20.16.0/20, got "
            "'10.20.24.0/21'; write the range of each subnet as the account shows it",
        ],
    ),
    "a subnet that stands there twice": (
        existing_document(subnets=[*subnets(), subnet(21, "us-east-1a", "10.20.48.0/20", "nodes")]),
        [
            "network.subnets[5].id: the id of network.subnets[2] too, got "
            "'subnet-0a1b2c3d4e5f60021'; write each subnet once, with all of its uses in use",
        ],
    ),
    "names and ids of zones": (
        existing_document(subnets=with_subnet(3, zone="use1-az2")),
        [
            "network.subnets: zone names and zone ids mixed, so that two of them may be one zone; "
            "write names alone, or ids alone",
        ],
    ),
    "a control plane in one zone": (
        existing_document(subnets=subnets()[1:]),
        [
            "network.subnets: the control plane needs subnets in two zones; add control-plane to "
            "the use of a subnet in each of two zones",
        ],
    ),
    "no subnet for nodes": (
        existing_document(
            *({**SYSTEM_POOL, "zones": ["us-east-1a"]}, {**POOL, "zones": ["us-east-1a"]}),
            subnets=[*subnets()[:2], subnets()[4]],
        ),
        [
            "network.subnets: no subnet for nodes; add nodes to the use of a subnet",
            "pools[system].zones[0]: no subnet of network.subnets there has nodes in its use, got "
            "'us-east-1a'; add nodes to a subnet's use",
        ],
    ),
    "accelerated nodes in a zone without a subnet for them": (
        existing_document(SYSTEM_POOL, {**POOL, "zones": ["us-east-1b"]}),
        [
            "pools[train].zones[0]: no subnet of network.subnets there has accelerated in its use, "
            "got 'us-east-1b'; use us-east-1a",
        ],
    ),
    "more free addresses than there are": (
        existing_document(subnets=with_subnet(0, free_addresses=60, free_prefixes=3)),
        [
            "network.subnets[0].free_addresses: more than the 59 addresses that 10.20.0.0/26 "
            "gives, got 60; record it anew: `ultrascale network record`",
            "network.subnets[0].free_prefixes: more than the 2 blocks of 16 addresses that "
            "10.20.0.0/26 gives, got 3; record it anew: `ultrascale network record`",
        ],
    ),
    "ranges of the VPC that overlap": (
        existing_document(vpc={"id": VPC, "cidrs": [*RANGES, "100.64.0.0/18", "10.0.0.0/8"]}),
        [
            "network.vpc.cidrs[2]: overlaps 100.64.0.0/16 of the same VPC, got '100.64.0.0/18'; "
            "write each range once",
            "network.vpc.cidrs[3]: not a size that a VPC takes, got '10.0.0.0/8'; use a mask from "
            "/16 to /28",
            "network.vpc.cidrs[3]: overlaps 10.20.0.0/16 of the same VPC, got '10.0.0.0/8'; write "
            "each range once",
        ],
    ),
    "Services in a connected range": (
        existing_document(connected_cidrs=["172.16.0.0/12"]),
        [
            "kubernetes.service_cidr: overlaps network.connected_cidrs 172.16.0.0/12, got the "
            "default 172.20.0.0/16; choose a free range",
        ],
    ),
    "Services in a range of the VPC": (
        existing_document(vpc={"id": VPC, "cidrs": [*RANGES, "172.20.0.0/16"]}),
        [
            "kubernetes.service_cidr: overlaps network.vpc.cidrs 172.20.0.0/16, got the default "
            "172.20.0.0/16; choose a free range",
        ],
    ),
    "a connected range within the VPC": (
        existing_document(connected_cidrs=["10.20.128.0/17"]),
        [
            "network.connected_cidrs[0]: overlaps 10.20.0.0/16 of the VPC, got '10.20.128.0/17'; "
            "name the ranges of the others alone",
        ],
    ),
    "the owner is the cluster's account": (
        existing_document(vpc={"id": VPC, "cidrs": RANGES, "owner": OWNER}) | {"account": OWNER},
        [
            "network.vpc.owner: the account of the cluster, and a VPC of its own is not shared, "
            f"got '{OWNER}'; leave it out",
        ],
    ),
    "ids that are none": (
        existing_document(vpc={"id": "vpc-1", "cidrs": RANGES}),
        [
            "network.vpc.id: not the id of a VPC, got 'vpc-1'; write vpc- and 17 digits of 0-9 and "
            "a-f, as the console shows it",
        ],
    ),
    "nodes without a way out, by what is recorded": (
        existing_document(subnets=with_subnet(2, route="none")),
        [
            "network.subnets[2].route: no way out for nodes, and network.egress is nat, got "
            "'none'; use a subnet with a route, or write egress: none",
        ],
    ),
    "a database in one zone": (
        existing_document(
            {**SYSTEM_POOL, "zones": ["us-east-1a"]},
            {**POOL, "zones": ["us-east-1a"]},
            subnets=[*subnets()[:3], subnets()[4]],
        )
        | {"backend": {"submits_to": [], "database": {"engine": "postgres", "version": "17"}}},
        [
            "network.subnets: its database needs subnets in two zones, and nodes has those of "
            "us-east-1a alone; add nodes to the use of a subnet in another zone",
            "backend.submits_to: a backend that may launch nothing; name templates of jobs",
        ],
    ),
    "a file system of ours where only accelerated nodes have subnets": (
        existing_document(
            {**SYSTEM_POOL, "zones": ["us-east-1b"]},
            {**POOL, "zones": ["us-east-1a"]},
            subnets=[*subnets()[:2], *subnets()[3:]],
        )
        | {"storage": {"lustre": [LUSTRE | {"zone": "us-east-1a"}]}},
        [
            "storage.lustre[a].zone: no subnet of network.subnets there has nodes in its use, got "
            "'us-east-1a'; use us-east-1b, or add a subnet",
        ],
    ),
    "a file system in a zone without subnets": (
        existing_document() | {"storage": {"lustre": [LUSTRE]}},
        [
            "storage.lustre[a].zone: no zone of network.subnets, got 'us-east-1c'; use one of "
            "us-east-1a, us-east-1b, or add it there",
        ],
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_mistake_is_told_with_its_place_and_the_way_out(name: str) -> None:
    document, lines = BAD[name]
    assert mistakes_in(document) == lines


def test_ranges_of_the_vpc_may_lie_within_a_connected_one() -> None:
    assert mistakes_in(existing_document(connected_cidrs=["10.0.0.0/8"])) == []


def test_a_pool_is_in_the_zones_that_have_subnets_for_it() -> None:
    cluster = loads_own(as_json(existing_document(SYSTEM_POOL, FREE)))
    assert cluster.network.zone_names == ("us-east-1a", "us-east-1b")
    assert cluster.network.zones_for(accelerated=True) == ("us-east-1a",)
