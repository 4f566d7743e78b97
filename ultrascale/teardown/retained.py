"""Resources that outlive a cluster's stacks: stacks kept them, or services made them.

Sources:
    https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ListStackResources.html
    https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_DescribeStackResources.html
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-properties-resource-tags.html
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/import-resources.html
    https://docs.aws.amazon.com/resourcegroupstagging/latest/APIReference/API_GetResources.html
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ultrascale.account import Account
from ultrascale.errors import QuestionError, UnansweredError
from ultrascale.frozen import Frozen
from ultrascale.plan import ClusterPlan, names
from ultrascale.plan.model import StoragePlan
from ultrascale.plan.stacks import fixed_stacks, stack_of
from ultrascale.teardown import prices
from ultrascale.teardown.ec2 import SECURITY_GROUP, tags
from ultrascale.teardown.model import Found, Scope, Thing
from ultrascale.teardown.stacks import (
    LOGICAL_ID_TAG,
    PARTS,
    STACK_TAG,
    deleted_stacks,
    functions_among,
)
from ultrascale.teardown.storage import BUCKET, FILE_SYSTEM, file_system_facts, file_systems

if TYPE_CHECKING:
    from mypy_boto3_cloudformation.type_defs import StackResourceSummaryTypeDef
    from mypy_boto3_fsx.type_defs import FileSystemTypeDef
    from mypy_boto3_resourcegroupstaggingapi.type_defs import TagFilterTypeDef

REPOSITORY, LOG_GROUP = "AWS::ECR::Repository", "AWS::Logs::LogGroup"
DATABASE, DATABASE_INSTANCE = "AWS::RDS::DBCluster", "AWS::RDS::DBInstance"
KEY = "AWS::KMS::Key"
# Values of one filter.
_VALUES = 20
# AWS refuses a request with a service that the Region lacks: every Region has these.
# Source: https://github.com/boto/botocore/issues/1843
_SERVICES = ("s3", "rds", "kms", "logs", "ecr", "ec2:security-group")
# The id of a resource in its ARN.
_ARNS = (
    (BUCKET, re.compile(r"arn:[^:]+:s3:::([^/:]+)")),
    (DATABASE, re.compile(r"arn:[^:]+:rds:[^:]+:[^:]+:cluster:(.+)")),
    (DATABASE_INSTANCE, re.compile(r"arn:[^:]+:rds:[^:]+:[^:]+:db:(.+)")),
    (KEY, re.compile(r"arn:[^:]+:kms:[^:]+:[^:]+:key/(.+)")),
    (LOG_GROUP, re.compile(r"arn:[^:]+:logs:[^:]+:[^:]+:log-group:([^:]+)(?::\*)?")),
    (REPOSITORY, re.compile(r"arn:[^:]+:ecr:[^:]+:[^:]+:repository/(.+)")),
    (SECURITY_GROUP, re.compile(r"arn:[^:]+:ec2:[^:]+:[^:]+:security-group/(.+)")),
)
# Characters of the hash at the end of each logical id of the CDK.
_HASH = 8
# A function's name begins with at least this many characters of its stack's name.
_BEGIN = 20
# CloudFormation's code where no stack holds a resource, and in other cases.
_NO_STACK = "ValidationError"
# CloudFormation lists deleted stacks for 90 days.
_DELETED = frozenset({"DELETE_COMPLETE", "DELETE_SKIPPED"})


class Retained(Frozen):
    """A resource that outlives its stack."""

    stack: str  # Name of its stack; empty where a service made the resource
    type: str  # CloudFormation's name of its type
    logical_id: str  # Its name in the template
    id: str  # Its name in its service
    component: str = ""  # Its name in the cluster file; empty where it has none there
    facts: str = ""  # Its age and size, where its service tells them
    price: prices.Price = prices.UNKNOWN  # Its price
    # Stack outside of the cluster that holds it now; empty without one, or where nobody asked.
    owner: str = ""

    @property
    def thing(self) -> Thing:
        """The resource, as a plan prints it."""
        note = ", ".join(filter(None, (self.component or self.logical_id, self.facts)))
        return Thing(kind=self.type, id=self.id, note=note)


def existing_storage(storage: StoragePlan) -> frozenset[str]:
    """Return the ids of the existing storage that the file names: a teardown never touches it.

    A former deployment of the cluster may have made the storage: it then has the tags of its stack.
    """
    systems = storage.existing_lustre
    return frozenset(
        [system.file_system_id for system in systems]
        + [each.security_group for each in systems]
        + [bucket.bucket_name for bucket in storage.existing_buckets]
    )


def with_details(
    plan: ClusterPlan, resource: Retained, systems: "Mapping[str, FileSystemTypeDef]"
) -> Retained:
    """Return a resource with its name in the cluster file, its size, age and price."""
    facts, price = "", prices.of_type(resource.type)
    if resource.id in systems:
        facts, price = file_system_facts(systems[resource.id])
    return replace(resource, component=component(plan, resource), facts=facts, price=price)


def stack_leftovers(
    stack: str, held: "Iterable[StackResourceSummaryTypeDef]"
) -> Iterator[Retained]:
    """Yield the resources that a deleted stack has left behind.

    Args:
        stack: Its name.
        held: Its resources.
    """
    for resource in held:
        id, kind = resource.get("PhysicalResourceId"), resource["ResourceType"]
        if resource["ResourceStatus"] != "DELETE_SKIPPED" or not id:
            continue
        if not kind.startswith("Custom::") and kind not in PARTS:
            yield Retained(stack=stack, type=kind, logical_id=resource["LogicalResourceId"], id=id)


def left_file_systems(
    name: str, storage: StoragePlan, systems: "Mapping[str, FileSystemTypeDef]"
) -> Iterator[Retained]:
    """Yield the file systems with the tag of a cluster's stack, including replaced ones."""
    stack, existing = stack_of(name, "storage"), existing_storage(storage)
    for id, system in systems.items():
        own = tags(system.get("Tags", []))
        if own.get(STACK_TAG) == stack and id not in existing:
            logical_id = own.get(LOGICAL_ID_TAG, "")
            yield Retained(stack=stack, type=FILE_SYSTEM, logical_id=logical_id, id=id)


def left_by_tags(account: Account, name: str) -> Iterator[Retained]:
    """Yield the resources with the tags of a cluster's stacks, deleted stacks included.

    CloudFormation lists neither resources that it replaced and kept, nor the resources of stacks
    that were deleted more than 90 days ago.
    """
    stacks = sorted(fixed_stacks(name))
    for begin in range(0, len(stacks), _VALUES):
        wanted: TagFilterTypeDef = {"Key": STACK_TAG, "Values": stacks[begin : begin + _VALUES]}
        tagged = account.ask_all(
            account.client("resourcegroupstaggingapi").get_resources,
            lambda page: page["ResourceTagMappingList"],
            TagFilters=[wanted],
            ResourceTypeFilters=list(_SERVICES),
        )
        for resource in tagged:
            own = tags(resource.get("Tags", []))
            for kind, arn in _ARNS:
                if (match := arn.fullmatch(resource["ResourceARN"])) is not None:
                    yield Retained(
                        stack=own.get(STACK_TAG, ""),
                        type=kind,
                        logical_id=own.get(LOGICAL_ID_TAG, ""),
                        id=match[1],
                    )


def made_by_services(scope: Scope) -> Iterator[Retained]:
    """Yield the log groups and repositories that services made for a cluster.

    Log groups of the control plane, of metrics, of functions and of parts; repositories that the
    image cache fills.

    Args:
        scope: The cluster, with the functions of its stacks, deleted ones among them.
    """
    account, plan = scope.account, scope.plan
    own = {f"/aws/lambda/{name}" for name in scope.functions}
    every = f"/aws/lambda/{plan.name[:_BEGIN]}"
    prefixes = [every, f"/aws/eks/{plan.name}/", f"/aws/containerinsights/{plan.name}/"]
    prefixes += [prefix for part in plan.parts for prefix in part.log_prefixes]
    for prefix in prefixes:
        for group in account.ask_all(
            account.client("logs").describe_log_groups,
            lambda page: page["logGroups"],
            logGroupNamePrefix=prefix,
        ):
            name = group["logGroupName"]
            if prefix != every or name in own:
                yield Retained(stack="", type=LOG_GROUP, logical_id="", id=name)
    prefixes = [f"{plan.name}/"]
    if plan.images.cache is not None:
        prefixes += [f"{rule.prefix}/" for rule in plan.images.cache.rules]
    for repository in account.ask_all(
        account.client("ecr").describe_repositories, lambda page: page["repositories"]
    ):
        name = repository["repositoryName"]
        if name.startswith(tuple(prefixes)):
            yield Retained(stack="", type=REPOSITORY, logical_id="", id=name)


def by_file_system_tags(scope: Scope) -> Iterator[Found]:
    """Yield the file systems that stacks of a cluster have left."""
    systems = file_systems(scope.account)
    for system in left_file_systems(scope.plan.name, scope.plan.storage, systems):
        yield _outlives(with_details(scope.plan, system, systems), certain=True)


def by_deleted_stacks(scope: Scope) -> Iterator[Found]:
    """Yield the resources that deleted stacks of a cluster left, apart from file systems."""
    for name, held in deleted_stacks(scope.account, scope.plan.name):
        yield from _resources(scope, stack_leftovers(name, held))


def by_stack_tags(scope: Scope) -> Iterator[Found]:
    """Yield the resources with the tags of a cluster's stacks, apart from file systems."""
    return _resources(scope, left_by_tags(scope.account, scope.plan.name))


def by_service(scope: Scope) -> Iterator[Found]:
    """Yield the log groups and repositories that services made for a cluster."""
    stacks = deleted_stacks(scope.account, scope.plan.name)
    functions = scope.functions.union(*(functions_among(held) for _, held in stacks))
    for resource in made_by_services(replace(scope, functions=functions)):
        yield Found(
            thing=resource.thing,
            why="a service made it since the plan was printed, or a stack has left it",
        )


def _resources(scope: Scope, resources: Iterable[Retained]) -> Iterator[Found]:
    existing = existing_storage(scope.plan.storage)
    for resource in resources:
        # File systems are found by their own tags, with their sizes.
        if resource.type != FILE_SYSTEM and resource.id not in existing:
            yield _outlives(with_details(scope.plan, resource, {}), certain=False)


def _outlives(resource: Retained, *, certain: bool) -> Found:
    why = f"the stack {resource.stack} has left it"
    return Found(thing=resource.thing, why=why, price=resource.price, certain=certain)


def component(plan: ClusterPlan, resource: Retained) -> str:
    """Return a resource's name in the cluster file; empty if the file does not name it."""
    if resource.type == REPOSITORY:
        # The image cache may fill a repository whose name is also in the file.
        owned = {names.repository(plan.name, name): name for name in plan.images.repositories}
        return owned.get(resource.id, "")
    if resource.stack != stack_of(plan.name, "storage"):
        return ""
    ids = {plain(system.name): system.name for system in plan.storage.lustre}
    ids |= {f"{plain(system.name)}SecurityGroup": system.name for system in plan.storage.lustre}
    ids |= {f"Buckets{plain(bucket.name)}": bucket.name for bucket in plan.storage.buckets}
    return ids.get(resource.logical_id[:-_HASH], "")


def plain(name: str) -> str:
    """Return a name's letters and digits: the CDK writes only those into a logical id."""
    return re.sub(r"[^A-Za-z0-9]", "", name)


def with_owners(
    account: Account, resources: Sequence[Retained], going: Set[str], own: Set[str]
) -> tuple[Retained, ...]:
    """Set the owner of each resource: the stack, not one of this cluster's, that holds it now.

    A resource that a stack has left can be imported into another stack, and a log group has the
    name that its service looks for, whoever makes it.

    Args:
        account: The account.
        resources: Resources that would stay.
        going: Ids of the resources to be deleted; only their owners are looked up.
        own: Ids of all resources that the stacks of the cluster hold.

    Raises:
        QuestionError: Storage that the user named belongs to another stack; one line for each.
        UnansweredError: AWS did not answer.
    """
    asked = going - own
    owned = tuple(
        replace(resource, owner=_owner(account, resource)) if resource.id in asked else resource
        for resource in resources
    )
    wrong = [
        f"--delete-storage: {resource.thing} is in the stack {resource.owner} by now, which is not "
        "of this cluster; leave it out"
        for resource in owned
        if resource.owner and resource.type != LOG_GROUP
    ]
    if wrong:
        raise QuestionError(wrong)
    return owned


def _owner(account: Account, resource: Retained) -> str:
    """Return the stack that holds a resource; empty without one."""
    return next(_holders(account, resource), "")


def _holders(account: Account, resource: Retained) -> Iterator[str]:
    try:
        answer = account.ask(
            account.client("cloudformation").describe_stack_resources,
            PhysicalResourceId=resource.id,
        )
    except UnansweredError as error:
        if error.code == _NO_STACK and "does not exist" in error.reason:
            return
        raise
    for held in answer.get("StackResources", []):
        is_same = (held.get("PhysicalResourceId"), held["ResourceType"]) == (
            resource.id,
            resource.type,
        )
        if is_same and held["ResourceStatus"] not in _DELETED:
            yield held["StackName"]
