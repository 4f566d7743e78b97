"""Statements for owners of keys: with one too few nodes end at once, one too many opens the key."""

from typing import Any

import pytest

from tests.support.pools import make_cluster
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


class TestBucketsThatExist:
    """Their owners' keys are told like ours, once for each key."""

    def told(self, **bucket: Any) -> tuple[KeyPolicyPlan, ...]:
        return policies(
            keys={"storage": KEY},
            storage={"buckets": [{"name": "data", "existing": "corp-data", **bucket}]},
        )

    def test_one_that_nobody_mounts_needs_nothing(self) -> None:
        (policy,) = self.told(key=KEY.replace("5501", "5509"))

        assert policy.uses == ("storage",)

    def test_one_that_pods_only_read_is_decrypted_and_no_more(self) -> None:
        claim = {"namespace": "training", "name": "data", "mount_path": "/data"}

        _, policy = self.told(key=KEY.replace("5501", "5509"), claim=claim, read_only=True)

        assert (policy.uses, sids(policy)) == (("buckets",), ["ObjectsOfPods"])
        assert policy.statements[0]["Action"] == ["kms:Decrypt"]

    def test_a_key_that_is_also_that_of_what_is_made_is_told_once(self) -> None:
        claim = {"namespace": "training", "name": "data", "mount_path": "/data"}

        (policy,) = self.told(key=KEY, claim=claim)

        assert policy.uses == ("storage", "buckets")
        assert sids(policy) == ["ObjectsOfPods"]
