"""The policy of the Karpenter controller: all that it needs, on this cluster's nodes alone."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from tests.support.folders import DATA
from ultrascale_constructs.karpenter_policy import PolicyScope, Statement, controller_policies

TARGET = PolicyScope(
    partition="aws",
    region="us-west-2",
    account="111122223333",
    cluster="research",
    node_role_arns=("arn:aws:iam::111122223333:role/research-node-us-west-2",),
    queue_arn="arn:aws:sqs:us-west-2:111122223333:research-karpenter",
)
POLICIES = controller_policies(TARGET)
STATEMENTS = {s.sid: s for statements in POLICIES.values() for s in statements}

# What Karpenter's own template has for a cluster without zonal shift.
OFFICIAL: Mapping[str, Mapping[str, Any]] = yaml.safe_load(
    (DATA / "karpenter_policy.yaml").read_text(encoding="utf-8")
)
# Whose cluster, Region, partition, account, node role and queue are called as in that table.
AS_OFFICIAL = PolicyScope(
    partition="P", region="R", account="A", cluster="C", node_role_arns=("N",), queue_arn="Q"
)
# They name what a launch uses but does not make; what it makes is bound by its tags.
UNCONDITIONAL = {"AllowScopedEC2InstanceAccessActions"}


def changing() -> list[Statement]:
    """Return the statements with an action that changes something in EC2 or IAM."""
    reads = ("ec2:Describe", "iam:Get", "iam:List", "iam:PassRole")
    return [
        s
        for s in STATEMENTS.values()
        if any(a.startswith(("ec2:", "iam:")) and not a.startswith(reads) for a in s.actions)
    ]


def keys(statement: Statement) -> dict[str, object]:
    """Return every condition key of a statement, with its value."""
    return {key: value for each in statement.condition.values() for key, value in each.items()}


def allowed(action: str) -> list[Statement]:
    return [s for s in STATEMENTS.values() if action in s.actions]


def test_its_statements_are_the_official_ones() -> None:
    assert STATEMENTS.keys() == OFFICIAL.keys()


@pytest.mark.parametrize("sid", OFFICIAL)
def test_each_allows_what_the_official_one_does_and_no_more(sid: str) -> None:
    policies = controller_policies(AS_OFFICIAL).values()
    (statement,) = (s for statements in policies for s in statements if s.sid == sid)
    official = OFFICIAL[sid]

    assert sorted(statement.actions) == sorted(official["actions"])
    assert sorted(statement.resources) == sorted(official["resources"])
    assert statement.condition == official.get("condition", {})


@pytest.mark.parametrize("statement", changing(), ids=lambda s: s.sid)
def test_what_it_changes_carries_the_tag_of_this_cluster(statement: Statement) -> None:
    if statement.sid in UNCONDITIONAL:
        kinds = {arn.rpartition(":")[2].partition("/")[0] for arn in statement.resources}
        assert not kinds & {"instance", "launch-template", "volume", "fleet", "network-interface"}
        return

    tags = {key: value for key, value in keys(statement).items() if "Tag/" in key}

    owned = {key.partition("/")[2]: value for key, value in tags.items()}
    assert owned["kubernetes.io/cluster/research"] == "owned"


@pytest.mark.parametrize("action", ["ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"])
def test_it_ends_only_what_a_node_pool_of_the_cluster_launched(action: str) -> None:
    (statement,) = allowed(action)

    assert statement.condition == {
        "StringEquals": {"aws:ResourceTag/kubernetes.io/cluster/research": "owned"},
        "StringLike": {"aws:ResourceTag/karpenter.sh/nodepool": "*"},
    }


def test_it_passes_the_role_of_its_nodes_to_ec2_and_no_other() -> None:
    (statement,) = allowed("iam:PassRole")

    assert statement.resources == [*TARGET.node_role_arns]
    assert keys(statement) == {"iam:PassedToService": ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"]}


def test_it_launches_into_reservations_and_placement_groups() -> None:
    resources = STATEMENTS["AllowScopedEC2InstanceAccessActions"].resources

    assert "arn:aws:ec2:us-west-2:*:capacity-reservation/*" in resources
    assert "arn:aws:ec2:us-west-2:*:placement-group/*" in resources


def test_it_sees_what_it_launches_into() -> None:
    actions = set(STATEMENTS["AllowRegionalReadActions"].actions)

    wanted = ("CapacityReservations", "PlacementGroups", "InstanceStatus", "SpotPriceHistory")
    assert {f"ec2:Describe{kind}" for kind in wanted} <= actions


def test_a_tag_it_adds_later_cannot_move_an_instance_to_another_cluster() -> None:
    statement = STATEMENTS["AllowScopedResourceTagging"]

    assert statement.condition["ForAllValues:StringEquals"] == {
        "aws:TagKeys": ["eks:eks-cluster-name", "karpenter.sh/nodeclaim", "Name"]
    }
    assert statement.condition["StringEqualsIfExists"] == {
        "aws:RequestTag/eks:eks-cluster-name": "research"
    }


def test_no_action_is_a_wildcard_and_rebooting_is_not_among_them() -> None:
    actions = {action for s in STATEMENTS.values() for action in s.actions}

    assert not any("*" in action for action in actions)
    # Only the alpha gate RebootForRepair needs it.
    assert "ec2:RebootInstances" not in actions


def test_where_it_reboots_nodes_it_reboots_its_own_alone() -> None:
    policies = controller_policies(replace(TARGET, reboots_nodes=True))

    (statement,) = (
        s for each in policies.values() for s in each if "ec2:RebootInstances" in s.actions
    )
    assert statement.resources == ["arn:aws:ec2:us-west-2:*:instance/*"]
    assert keys(statement) == keys(STATEMENTS["AllowScopedDeletion"])


def test_other_queues_and_clusters_are_out_of_its_reach() -> None:
    assert STATEMENTS["AllowInterruptionQueueActions"].resources == [TARGET.queue_arn]
    assert STATEMENTS["AllowAPIServerEndpointDiscovery"].resources == [
        "arn:aws:eks:us-west-2:111122223333:cluster/research"
    ]


def test_every_arn_is_of_the_partition() -> None:
    govcloud = PolicyScope(
        partition="aws-us-gov",
        region="us-gov-west-1",
        account="111122223333",
        cluster="research",
        node_role_arns=("arn:aws-us-gov:iam::111122223333:role/n",),
        queue_arn="arn:aws-us-gov:sqs:us-gov-west-1:111122223333:q",
    )

    arns = {
        arn
        for statements in controller_policies(govcloud).values()
        for statement in statements
        for arn in statement.resources
    }

    assert all(arn == "*" or arn.startswith("arn:aws-us-gov:") for arn in arns)


def longest() -> Mapping[str, Sequence[Statement]]:
    """Return the policies of the cluster with the longest names."""
    cluster, region = "c" * 40, "ap-southeast-99"
    return controller_policies(
        PolicyScope(
            partition="aws-iso-b",
            region=region,
            account="111122223333",
            cluster=cluster,
            node_role_arns=(f"arn:aws-iso-b:iam::111122223333:role/{cluster}-node-{region}",),
            queue_arn=f"arn:aws-iso-b:sqs:{region}:111122223333:{cluster}-karpenter",
        )
    )


@pytest.mark.parametrize("statements", longest().values(), ids=longest())
def test_every_policy_is_within_the_size_that_iam_takes(statements: Sequence[Statement]) -> None:
    document = {"Version": "2012-10-17", "Statement": [s.document for s in statements]}

    assert len(json.dumps(document, separators=(",", ":"))) <= 6_144


def test_a_statement_without_a_condition_has_no_such_key() -> None:
    document = STATEMENTS["AllowPricingReadActions"].document

    assert document == {
        "Sid": "AllowPricingReadActions",
        "Effect": "Allow",
        "Action": ["pricing:GetProducts"],
        "Resource": ["*"],
    }
