"""A teardown in a VPC of somebody else: a hundred resources of others stay as they are."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.support.estate.account import Estate
from tests.support.estate.cluster import ALL, ids, interface, kept, stack
from tests.support.estate.foreign import estate_in_existing_vpc, settle
from tests.support.existing_vpc import VPC
from ultrascale.teardown import sweep


def things(found: Estate) -> dict[str, Any]:
    """Return all that the account holds of the kinds that a teardown looks at, by id."""
    named = {**found.interfaces, **found.groups, **found.instances, **found.file_systems}
    lists = dict.fromkeys([*found.log_groups, *found.repositories], True)
    return deepcopy({**named, **found.buckets, **lists})


def test_nothing_of_others_is_named_or_touched(tmp_path: Path) -> None:
    account = estate_in_existing_vpc()
    foreign = settle(account)
    assert len(foreign) == 100
    before = things(account)

    teardown = account.planned(ALL)
    told = sweep(account.scope, teardown)
    account.carry_out(teardown, tmp_path)
    rest = sweep(account.scope, teardown)

    named = ids(teardown) | kept(teardown).keys()
    named |= {left.thing.id for found in (told, rest) for left in found.left}
    assert not foreign & named
    assert not foreign & {*account.deleted}
    assert VPC not in named
    after = things(account)
    assert {id: after[id] for id in foreign} == {id: before[id] for id in foreign}
    assert "research-cluster" in account.deleted


def test_words_of_the_plan_hold_no_id_of_others() -> None:
    account = estate_in_existing_vpc()
    foreign = settle(account)
    words = repr(account.planned(ALL))
    assert [id for id in foreign if id in words] == []


@pytest.mark.parametrize("owner", ["ours", "theirs"])
def test_an_interface_that_our_plugin_left_goes_and_one_of_another_account_stays(
    owner: str,
) -> None:
    account = estate_in_existing_vpc()
    tags = [{"Key": "cluster.k8s.amazonaws.com/name", "Value": "research"}]
    account_id = account.account.id if owner == "ours" else "444455556666"
    account.interfaces["eni-1"] = interface("eni-1", VpcId=VPC, TagSet=tags, OwnerId=account_id)
    assert ("eni-1" in ids(account.planned())) == (owner == "ours")


def test_a_security_group_that_eks_left_goes() -> None:
    account = estate_in_existing_vpc()
    tags = [{"Key": "aws:eks:cluster-name", "Value": "research"}]
    group = {"GroupId": "sg-1", "VpcId": VPC, "GroupName": "eks-cluster-sg-research", "Tags": tags}
    account.groups["sg-1"] = group
    assert "sg-1" in ids(account.planned())


def test_our_endpoints_go_and_the_step_does_not_say_that_it_deletes_the_vpc() -> None:
    endpoint = ("AWS::EC2::VPCEndpoint", "Ecr", "vpce-1", False)
    account = estate_in_existing_vpc()
    account.stacks["research-network"] = stack("network", resources=[endpoint])
    teardown = account.planned()
    (step,) = (step for step in teardown.steps if step.name == "network")
    assert "research-network" in ids(teardown)
    assert step.title == "delete our endpoints in the VPC, which stays: it is not ours"
    assert not step.stops
