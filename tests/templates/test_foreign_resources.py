"""The example in a network of others, with a hundred resources of others beside it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.assembly import Assembly
from tests.support.estate.account import Estate
from tests.support.estate.cluster import ids, kept
from tests.support.estate.doubles import FakeStack
from tests.support.estate.foreign import settle
from ultrascale.guard.sources import compare_deployed
from ultrascale.teardown import sweep
from ultrascale.teardown.kept import Asked

Templates = Mapping[str, Any]
# Theirs has the beginning of our name.
FOREIGN_STACK = FakeStack(
    "estate-shared", [("AWS::EC2::VPC", "Vpc", "vpc-0f9", False)], cluster="estate-shared"
)


def templates_of(estate: Assembly) -> Templates:
    return {f"estate-{layer}": template for layer, template in estate.templates.items()}


def deployed(estate: Assembly) -> Estate:
    """Return an account in which the example is deployed, with a stack of somebody else."""
    stacks = [
        FakeStack(name, [*held(template)], cluster="estate")
        for name, template in templates_of(estate).items()
    ]
    account = Estate(estate.plan, *stacks, FOREIGN_STACK)
    for stack in stacks:
        for type, _, id, retained in stack.resources:
            if not retained:
                continue
            if type == "AWS::S3::Bucket":
                account.buckets[id] = ["a"]
            elif type == "AWS::ECR::Repository":
                account.repositories.add(id)
            elif type == "AWS::Logs::LogGroup":
                account.log_groups.add(id)
    account.answers["ec2:DescribeCapacityReservations"] = {"CapacityReservations": []}
    account.answers["cloudformation:GetTemplate"] = lambda asked: {
        "TemplateBody": json.dumps(by_id(account, templates_of(estate), asked["StackName"]))
    }
    return account


def held(template: Mapping[str, Any]) -> list[tuple[str, str, str, bool]]:
    """Return type, logical id, physical id and whether it is retained, of each resource."""
    found: list[tuple[str, str, str, bool]] = []
    for logical, body in template.get("Resources", {}).items():
        properties = body.get("Properties", {})
        names = (properties.get(key) for key in ("LogGroupName", "RepositoryName", "Name"))
        named = next((name for name in names if isinstance(name, str)), logical.lower())
        retained = str(body.get("DeletionPolicy", "Delete")).startswith("Retain")
        found.append((body["Type"], logical, named, retained))
    return found


def by_id(account: Estate, templates: Templates, asked: str) -> Any:
    (name,) = (each.name for each in account.stacks.values() if asked in (each.id, each.name))
    return templates.get(name, {"Resources": {}})


def test_destroy_names_and_touches_nothing_of_others(estate: Assembly, tmp_path: Path) -> None:
    account = deployed(estate)
    foreign = settle(account, cluster="estate")
    assert len(foreign) == 100
    before = everything(account, foreign)

    teardown = account.planned(Asked(storage=frozenset({"checkpoints", "trainer"}), logs=True))
    account.carry_out(teardown, tmp_path)
    rest = sweep(account.scope, teardown)

    named = ids(teardown) | kept(teardown).keys() | {left.thing.id for left in rest.left}
    others = {*foreign, "estate-shared", "fs-0a1b2c3d4e5f60001", "corp-datasets"}
    assert not others & (named | {*account.deleted})
    assert everything(account, foreign) == before
    assert {"estate-cluster", "estate-storage"} <= {*account.deleted}


def test_the_guard_names_nothing_of_others(estate: Assembly) -> None:
    account = deployed(estate)
    foreign = settle(account, cluster="estate")
    changed = json.loads(json.dumps(templates_of(estate)))
    (cluster,) = (
        body["Properties"]
        for body in changed["estate-cluster"]["Resources"].values()
        if body["Type"] == "AWS::EKS::Cluster"
    )
    cluster["ResourcesVpcConfig"]["SubnetIds"] = ["subnet-1", "subnet-2"]

    same = compare_deployed(
        account.account, estate.plan.name, estate.plan.region, templates_of(estate)
    )
    other = compare_deployed(account.account, estate.plan.name, estate.plan.region, changed)

    assert not same.resources
    assert "loses data" in other.verdicts
    words = repr((same, other))
    assert [id for id in (*foreign, "estate-shared") if id in words] == []
    assert not account.deleted


def everything(account: Estate, ids: set[str]) -> dict[str, Any]:
    """Return what the account holds of ``ids``."""
    things: dict[str, Any] = {
        **account.interfaces,
        **account.groups,
        **account.instances,
        **account.file_systems,
        **account.buckets,
        **dict.fromkeys([*account.log_groups, *account.repositories], True),
    }
    return {id: json.dumps(things[id], default=str) for id in ids}
