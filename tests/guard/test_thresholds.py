"""A fleet that grows or shrinks past a size keeps what its nodes, pods and people use."""

from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Any

from tests.support.assembly import Assembly
from tests.support.cases import for_each
from tests.support.cluster_keys import DOCUMENTS
from tests.support.guard_sweep import made, whole
from ultrascale.guard import compare
from ultrascale.plan.scale import ROWS

# One within each row of the table: whatever the size is at which something changes, one of the
# steps crosses it.
SIZES = [row.nodes // 2 for row in ROWS]
STEPS = [step for old, new in pairwise(SIZES) for step in ((old, new), (new, old))]


def fleet(nodes: int) -> dict[str, Any]:
    """Return a cluster of as many nodes: managed and Karpenter's, reserved and burst."""
    base = DOCUMENTS["ultra-100k"]
    system, trn2, _, graviton = base["pools"]
    group = {
        "name": "services",
        "instance_types": ["m7g.8xlarge"],
        "provisioner": "managed-node-group",
        "purchase": {"option": "on-demand"},
        "nodes": {"static": 10},
    }
    pools = [
        {**system, "nodes": {"static": 3}},
        {**trn2, "nodes": {"static": 16}, "shards": 1},
        {**graviton, "nodes": {"max": nodes - 29}},
        group,
    ]
    lustre = {
        "name": "scratch",
        "zone": "us-east-2b",
        "capacity_gib": 4800,
        "throughput_mbps_per_tib": 250,
    }
    storage = {**base["storage"], "lustre": [lustre]}
    return {**base, "pools": pools, "storage": storage}


@cache
def built(nodes: int) -> Assembly:
    return made(fleet(nodes))


@for_each({f"from {old:,} to {new:,} nodes": (old, new) for old, new in STEPS})
def test_no_size_of_a_fleet_takes_from_nodes_what_they_run_by(old: int, new: int) -> None:
    before, after = built(old), built(new)

    changes = compare(whole(before), whole(after), region="us-east-2")

    # Above 1,000 nodes no network policy selects pods of jobs; below, ways to them close again.
    expected = {"exposes"} if new > old else {"cuts running pods off"}
    assert changes.verdicts <= expected, [
        *((change.ids[-1], change.lost or change.fails) for change in changes.resources),
        *((pool.ids[-1], pool.lost) for pool in changes.pools),
    ]


def test_what_a_fleet_opens_as_it_grows_is_told() -> None:
    opened = {
        (old, new): {
            setting.partition(": ")[0]
            for change in compare(
                whole(built(old)), whole(built(new)), region="us-east-2"
            ).resources
            for setting in change.opens
        }
        for old, new in STEPS
    }

    told = {setting for settings in opened.values() for setting in settings}
    assert told == {
        "ConfigurationValues/enableNetworkPolicy",
        "Logging/ClusterLogging/EnabledTypes",
        "who reaches its pods",
    }
    assert not any(settings for (old, new), settings in opened.items() if new < old)


def identities(assembly: Assembly) -> Mapping[str, str]:
    """Return the type of the access entry of each role that nodes are launched with."""
    (karpenter,) = (
        template["Resources"]
        for name, template in assembly.templates.items()
        if name == "karpenter"
    )
    roles = {
        logical_id: body["Properties"]["RoleName"]
        for logical_id, body in karpenter.items()
        if body["Properties"].get("RoleName")
    }
    return {
        roles[body["Properties"]["PrincipalArn"]["Fn::GetAtt"][0]]: body["Properties"]["Type"]
        for body in karpenter.values()
        if body["Type"] == "AWS::EKS::AccessEntry"
        and body["Properties"]["PrincipalArn"]["Fn::GetAtt"][0] in roles
    }


def test_the_roles_of_nodes_are_the_same_at_every_size() -> None:
    assert len({tuple(sorted(identities(built(nodes)).items())) for nodes in SIZES}) == 1
    assert sorted(identities(built(SIZES[0])).values()) == ["EC2", "EC2_LINUX"]
