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


def test_its_statements_allow_what_the_official_ones_do_and_no_more() -> None:
    """Among others: it ends, tags and passes a role to the nodes of this cluster alone."""
    policies = controller_policies(AS_OFFICIAL).values()
    found = {s.sid: s for statements in policies for s in statements}

    assert found.keys() == STATEMENTS.keys() == OFFICIAL.keys()
    for sid, statement in found.items():
        official = OFFICIAL[sid]
        assert sorted(statement.actions) == sorted(official["actions"]), sid
        assert sorted(statement.resources) == sorted(official["resources"]), sid
        assert statement.condition == official.get("condition", {}), sid
        assert ("Condition" in statement.document) is bool(statement.condition)


def test_where_it_reboots_nodes_it_reboots_its_own_alone() -> None:
    """Only the alpha gate RebootForRepair needs it."""
    policies = controller_policies(replace(TARGET, reboots_nodes=True))

    (statement,) = (
        s for each in policies.values() for s in each if "ec2:RebootInstances" in s.actions
    )
    assert statement.resources == ["arn:aws:ec2:us-west-2:*:instance/*"]
    assert statement.condition == STATEMENTS["AllowScopedDeletion"].condition


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
