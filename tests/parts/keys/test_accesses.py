"""Statements for owners of keys: with one too few nodes end at once, one too many opens the key."""

from typing import Any

import pytest

from tests.support.pools import NEURON_POOL, SYSTEM_POOL, make_cluster
from ultrascale.parts.keys.accesses import UNKNOWN_ACCOUNT, key_policies
from ultrascale.parts.keys.model import KeyPolicyPlan
from ultrascale.plan import plan_cluster

ACCOUNT, OWNER = "111122223333", "444455556666"
KEY = f"arn:aws:kms:us-west-2:{OWNER}:key/11111111-2222-4333-8444-555555555501"
ROLES = f"arn:aws:iam::{ACCOUNT}:role"


def policies(account: str | None = ACCOUNT, **changes: Any) -> tuple[KeyPolicyPlan, ...]:
    return key_policies(plan_cluster(make_cluster(**changes)), account)


def sids(policy: KeyPolicyPlan) -> list[str]:
    return [str(each["Sid"]) for each in policy.statements]


def test_one_key_for_all_is_one_policy_with_every_statement_once() -> None:
    uses = ("volumes", "secrets", "storage", "registry", "logs")

    (policy,) = policies(keys=dict.fromkeys(uses, KEY), storage={"buckets": ["checkpoints"]})

    assert policy.uses == uses
    assert len(sids(policy)) == len({*sids(policy)})
    assert {"DeploymentOfCluster", "LogGroups", "ObjectsOfPods"} <= {*sids(policy)}


def test_what_the_file_has_not_needs_no_statement() -> None:
    """A cluster of node groups alone: neither Karpenter nor file systems nor repositories."""
    volumes, storage = policies(keys={"volumes": KEY, "storage": KEY.replace("5501", "5503")})

    assert not [sid for sid in sids(volumes) if "Karpenter" in sid or "HyperPod" in sid]
    assert sids(storage) == []


@pytest.mark.parametrize("owner", [ACCOUNT, OWNER])
def test_grants_are_for_keys_of_other_accounts(owner: str) -> None:
    (policy,) = policies(keys={"volumes": KEY.replace(OWNER, owner)})

    assert policy.foreign is (owner == OWNER)
    assert bool(policy.grants) is (owner == OWNER)


def test_without_an_account_the_statements_show_where_it_goes() -> None:
    (policy,) = policies(None, keys={"volumes": KEY})

    assert policy.foreign is None
    assert f"::{UNKNOWN_ACCOUNT}:" in str(policy.statements)
    # It may turn out to be another one's.
    assert policy.grants


def test_everybody_is_named_under_the_account_the_service_and_the_role_alone() -> None:
    """A principal * without any of them would open the key to the world."""
    policy, *_ = policies(
        keys={"volumes": KEY, "storage": KEY, "logs": KEY}, storage={"buckets": ["checkpoints"]}
    )
    for each in policy.statements:
        if each["Principal"] != {"AWS": "*"}:
            continue
        condition: Any = each["Condition"]

        assert condition["StringEquals"]["kms:CallerAccount"] == ACCOUNT
        assert str(condition["ArnLike"]["aws:PrincipalArn"]).startswith(f"{ROLES}/")


def test_roles_of_stacks_with_long_names_are_found_by_what_cloudformation_keeps() -> None:
    name = "a-cluster-whose-name-is-long"
    policies_of = policies(name=name, keys={"storage": KEY}, storage={"buckets": ["checkpoints"]})

    ((access,),) = [policy.accesses for policy in policies_of]

    assert access.principals == (f"{ROLES}/a-cluster-whose-name*",)


def test_owners_of_keys_of_buckets_that_exist_are_told_like_ours_once_for_each_key() -> None:
    def told(**bucket: Any) -> tuple[KeyPolicyPlan, ...]:
        buckets = [{"name": "data", "existing": "corp-data", **bucket}]
        return policies(keys={"storage": KEY}, storage={"buckets": buckets})

    other = KEY.replace("5501", "5509")
    claim = {"namespace": "training", "name": "data", "mount_path": "/data"}
    (policy,) = told(key=other)
    assert policy.uses == ("storage",), "one that nobody mounts"
    _, policy = told(key=other, claim=claim, read_only=True)
    assert (policy.uses, sids(policy)) == (("buckets",), ["ObjectsOfPods"])
    assert policy.statements[0]["Action"] == ["kms:Decrypt"], "pods only read"
    (policy,) = told(key=KEY, claim=claim)
    assert policy.uses == ("storage", "buckets"), "a key that is also that of what is made"
    assert sids(policy) == ["ObjectsOfPods"]


def test_a_key_of_another_account_lets_the_ledger_be_written() -> None:
    keys, pools = {"storage": KEY}, [SYSTEM_POOL, NEURON_POOL]
    (policy,) = policies(keys=keys, pools=pools, observability={"ledger": {}})
    assert sids(policy) == ["Ledger"]
    assert policy.statements[0]["Action"] == ["kms:Decrypt", "kms:GenerateDataKey"]
