"""What outlives the stacks of a cluster: what they keep or have left, and what services made.

Sources:
    https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ListStackResources.html
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-properties-resource-tags.html
    https://docs.aws.amazon.com/resourcegroupstagging/latest/APIReference/API_GetResources.html
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from ultrascale.account import Account
from ultrascale.plan import ClusterPlan, names
from ultrascale.plan.stacks import fixed_stacks, stack_of
from ultrascale.teardown import prices
from ultrascale.teardown.model import Thing
from ultrascale.teardown.remains import tags
from ultrascale.teardown.retained import (
    BUCKET,
    DATABASE,
    DATABASE_INSTANCE,
    FILE_SYSTEM,
    KEY,
    LOG_GROUP,
    PARTS,
    REPOSITORY,
    SECURITY_GROUP,
    look,
)
from ultrascale.teardown.stacks import Stack, is_of

if TYPE_CHECKING:
    from mypy_boto3_resourcegroupstaggingapi.type_defs import TagFilterTypeDef

STACK_TAG = "aws:cloudformation:stack-name"
_LOGICAL_ID_TAG = "aws:cloudformation:logical-id"
FUNCTION = "AWS::Lambda::Function"
# Values of one filter.
_VALUES = 20
# A service that a Region does not have fails the request: each of these is in every one.
# Source: https://github.com/boto/botocore/issues/1843
_SERVICES = ("s3", "rds", "kms", "logs", "ecr", "ec2:security-group")
# What an ARN names, after its service, Region and account.
_ARNS = (
    (BUCKET, re.compile(r"arn:[^:]+:s3:::([^/:]+)")),
    (DATABASE, re.compile(r"arn:[^:]+:rds:[^:]+:[^:]+:cluster:(.+)")),
    (DATABASE_INSTANCE, re.compile(r"arn:[^:]+:rds:[^:]+:[^:]+:db:(.+)")),
    (KEY, re.compile(r"arn:[^:]+:kms:[^:]+:[^:]+:key/(.+)")),
    (LOG_GROUP, re.compile(r"arn:[^:]+:logs:[^:]+:[^:]+:log-group:([^:]+)(?::\*)?")),
    (REPOSITORY, re.compile(r"arn:[^:]+:ecr:[^:]+:[^:]+:repository/(.+)")),
    (SECURITY_GROUP, re.compile(r"arn:[^:]+:ec2:[^:]+:[^:]+:security-group/(.+)")),
)
# The CDK ends the id of a resource so.
_HASH = 8
# CloudFormation begins the name of a function with so much of its stack's at least.
_BEGIN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Retained:
    """A resource that stays when its stack goes, or did.

    Attributes:
        stack: Name of the stack.
        type: CloudFormation's name of its type.
        logical_id: Its name in the template.
        id: What its service calls it.
        component: Its name in the cluster file; empty where it has none there.
        facts: Its age and size, where its service tells them.
        price: What it costs.
        owner: A stack of another's that holds it by now; empty where nobody asked, or none does.
    """

    stack: str
    type: str
    logical_id: str
    id: str
    component: str = ""
    facts: str = ""
    price: prices.Price = prices.UNKNOWN
    owner: str = ""

    @property
    def thing(self) -> Thing:
        """The resource, as a plan prints it."""
        note = ", ".join(filter(None, (self.component or self.logical_id, self.facts)))
        return Thing(kind=self.type, id=self.id, note=note)


def find(account: Account, plan: ClusterPlan, stacks: Mapping[str, Stack]) -> tuple[Retained, ...]:
    """Return what the stacks of a cluster keep, and what others have left that are gone.

    Args:
        account: The account.
        plan: The cluster.
        stacks: Its stacks that are there.
    """
    systems = file_systems(account)
    found: dict[str, Retained] = {}
    held: set[str] = set()
    functions: set[str] = set()
    for stack in stacks.values():
        held |= {each.id for each in stack.resources}
        functions |= {each.id for each in stack.resources if each.type == FUNCTION}
        for each in stack.retained:
            found[each.id] = Retained(
                stack=stack.name, type=each.type, logical_id=each.logical_id, id=each.id
            )
    for name, gone in gone_stacks(account, plan.name):
        functions |= functions_among(gone)
        _add(account, found, held, left_by(name, gone))
    _add(account, found, held, left_file_systems(plan, systems))
    _add(account, found, held, left_by_tags(account, plan))
    for type, id in made_by_services(account, plan, functions):
        if id not in held:
            found.setdefault(id, Retained(stack="", type=type, logical_id="", id=id))
    every = (described(plan, each, systems) for each in found.values() if each.type not in PARTS)
    return tuple(each for each in every if each.type != FILE_SYSTEM or each.id in systems)


def _add(
    account: Account, found: dict[str, Retained], held: set[str], more: Iterable[Retained]
) -> None:
    for each in more:
        if each.id in held or each.id in found:
            continue
        if look(account, each.type, each.id) != "gone":
            found[each.id] = each


def described(
    plan: ClusterPlan, found: Retained, systems: Mapping[str, Mapping[str, Any]]
) -> Retained:
    """Return a resource with its name in the cluster file, its size, its age and its price."""
    facts, price = "", prices.of_type(found.type)
    if found.id in systems:
        facts, price = _facts(systems[found.id])
    return replace(found, component=component(plan, found), facts=facts, price=price)


def file_systems(account: Account) -> Mapping[str, Mapping[str, Any]]:
    """Return the file systems of an account in its Region, by their ids."""
    return {
        each["FileSystemId"]: each
        for each in account.ask_all(
            account.client("fsx").describe_file_systems, lambda page: page["FileSystems"]
        )
    }


def _facts(system: Mapping[str, Any]) -> tuple[str, prices.Price]:
    """Return size, age and price of a file system."""
    gib = system["StorageCapacity"]
    made = system.get("CreationTime")
    age = f"made {made:%Y-%m-%d}" if isinstance(made, datetime) else "of unknown age"
    lustre = cast("Mapping[str, Any]", system.get("LustreConfiguration", {}))
    tier = lustre.get("PerUnitStorageThroughput", 0)
    return f"{gib} GiB, {age}", prices.of_lustre(gib, tier)


def gone_stacks(account: Account, cluster: str) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield the stacks of a cluster that are gone, and what they held.

    CloudFormation tells of a stack for 90 days after its deletion.
    """
    for stack in account.ask_all(
        account.client("cloudformation").list_stacks,
        lambda page: page["StackSummaries"],
        StackStatusFilter=["DELETE_COMPLETE"],
    ):
        if is_of(stack.get("TemplateDescription"), cluster):
            id = stack["StackId"]
            yield (
                stack["StackName"],
                account.ask_all(
                    account.client("cloudformation").list_stack_resources,
                    lambda page: page["StackResourceSummaries"],
                    StackName=id,
                ),
            )


def left_by(stack: str, held: Iterable[Mapping[str, Any]]) -> Iterator[Retained]:
    """Yield what a stack has left that is gone.

    Args:
        stack: Its name.
        held: What it held.
    """
    for each in held:
        if each["ResourceStatus"] == "DELETE_SKIPPED" and each.get("PhysicalResourceId"):
            found = Retained(
                stack=stack,
                type=each["ResourceType"],
                logical_id=each["LogicalResourceId"],
                id=each["PhysicalResourceId"],
            )
            if not found.type.startswith("Custom::") and found.type not in PARTS:
                yield found


def left_file_systems(
    plan: ClusterPlan, systems: Mapping[str, Mapping[str, Any]]
) -> Iterator[Retained]:
    """Yield the file systems that carry the tag of a cluster's stack: one that was replaced, too.

    Args:
        plan: The cluster.
        systems: What `file_systems` returns.
    """
    stack = stack_of(plan.name, "storage")
    for id, system in systems.items():
        found = tags(system)
        if found.get(STACK_TAG) == stack:
            logical_id = found.get(_LOGICAL_ID_TAG, "")
            yield Retained(stack=stack, type=FILE_SYSTEM, logical_id=logical_id, id=id)


def left_by_tags(account: Account, plan: ClusterPlan) -> Iterator[Retained]:
    """Yield what else carries the tags of stacks of a cluster, whether it is there or was.

    CloudFormation tells nowhere else of what was replaced and kept, nor of stacks that are gone
    for longer than 90 days.

    Args:
        account: The account.
        plan: The cluster.
    """
    stacks = sorted(fixed_stacks(plan.name))
    for begin in range(0, len(stacks), _VALUES):
        wanted: TagFilterTypeDef = {"Key": STACK_TAG, "Values": stacks[begin : begin + _VALUES]}
        tagged = account.ask_all(
            account.client("resourcegroupstaggingapi").get_resources,
            lambda page: page["ResourceTagMappingList"],
            TagFilters=[wanted],
            ResourceTypeFilters=list(_SERVICES),
        )
        for each in tagged:
            found = tags(each)
            for type, arn in _ARNS:
                if (match := arn.fullmatch(each["ResourceARN"])) is not None:
                    yield Retained(
                        stack=found.get(STACK_TAG, ""),
                        type=type,
                        logical_id=found.get(_LOGICAL_ID_TAG, ""),
                        id=match[1],
                    )


def made_by_services(
    account: Account, plan: ClusterPlan, functions: Iterable[str]
) -> Iterator[tuple[str, str]]:
    """Yield what services have made for a cluster, and no stack has: type and id.

    Log groups of the control plane, of metrics, of functions and of HyperPod; repositories that the
    cache of images fills.

    Args:
        account: The account.
        plan: The cluster.
        functions: Names of the functions that its stacks have, or had.
    """
    own = {f"/aws/lambda/{each}" for each in functions}
    every = f"/aws/lambda/{plan.name[:_BEGIN]}"
    prefixes = [every, f"/aws/eks/{plan.name}/", f"/aws/containerinsights/{plan.name}/"]
    if plan.hyperpod is not None:
        prefixes.append(f"/aws/sagemaker/Clusters/{plan.hyperpod.name}/")
    for prefix in prefixes:
        for group in account.ask_all(
            account.client("logs").describe_log_groups,
            lambda page: page["logGroups"],
            logGroupNamePrefix=prefix,
        ):
            name = group["logGroupName"]
            if prefix != every or name in own:
                yield LOG_GROUP, name
    repositories = [f"{plan.name}/"]
    if plan.image_cache is not None:
        repositories += [f"{rule.prefix}/" for rule in plan.image_cache.rules]
    for each in account.ask_all(
        account.client("ecr").describe_repositories, lambda page: page["repositories"]
    ):
        if each["repositoryName"].startswith(tuple(repositories)):
            yield REPOSITORY, each["repositoryName"]


def functions_among(held: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Return the names of the functions among what a stack held."""
    return frozenset(
        each["PhysicalResourceId"]
        for each in held
        if each["ResourceType"] == FUNCTION and each.get("PhysicalResourceId")
    )


def component(plan: ClusterPlan, found: Retained) -> str:
    """Return what the cluster file calls a resource."""
    if found.type == REPOSITORY:
        # One that the cache of images fills may be called as one of the file is.
        owned = {names.repository(plan.name, each): each for each in plan.repositories}
        return owned.get(found.id, "")
    if found.stack != stack_of(plan.name, "storage"):
        return ""
    # The CDK leaves out of an id what is no letter and no digit.
    ids = {plain(each.name): each.name for each in plan.lustre}
    ids |= {f"{plain(each.name)}SecurityGroup": each.name for each in plan.lustre}
    ids |= {f"Buckets{plain(each.name)}": each.name for each in plan.buckets}
    return ids.get(found.logical_id[:-_HASH], "")


def plain(name: str) -> str:
    """Return a name as the CDK writes it into a logical id."""
    return re.sub(r"[^A-Za-z0-9]", "", name)
