"""What stays of a cluster, what of that goes because it was named, and what staying costs."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from ultrascale.account import Account
from ultrascale.errors import QuestionError
from ultrascale.plan import ClusterPlan, names
from ultrascale.plan.stacks import stack_names
from ultrascale.teardown import prices
from ultrascale.teardown.model import Left, Target, Thing
from ultrascale.teardown.retained import (
    BUCKET,
    DATABASE,
    DATABASE_INSTANCE,
    FILE_SYSTEM,
    IN_VPC,
    LOG_GROUP,
    PARTS,
    REPOSITORY,
    SECURITY_GROUP,
    RetainedTarget,
    command,
    is_paid,
    look,
)
from ultrascale.teardown.stacks import STACK, Stack, is_of

_LIST = "cloudformation:ListStacks"
_RESOURCES = "cloudformation:ListStackResources"
_LOG_GROUPS = "logs:DescribeLogGroups"
_REPOSITORIES = "ecr:DescribeRepositories"
# Of what has a fixed name.
_BLOCKS = (
    "a deployment under the same name fails while it is there, unless it takes it over "
    "(`cdk deploy --import-existing-resources`)"
)
# The CDK ends the id of a resource so.
_HASH = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the user wants to go that would stay.

    Attributes:
        storage: File systems, buckets and repositories, by their names in the cluster file.
        logs: Whether log groups go.
    """

    storage: frozenset[str] = frozenset()
    logs: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Retained:
    """A resource that stays when its stack goes, or did.

    Attributes:
        stack: Name of the stack.
        type: CloudFormation's name of its type.
        logical_id: Its name in the template.
        id: What its service calls it.
        component: Its name in the cluster file; empty where it has none there.
    """

    stack: str
    type: str
    logical_id: str
    id: str
    component: str = ""

    @property
    def thing(self) -> Thing:
        """The resource, as a plan prints it."""
        return Thing(kind=self.type, id=self.id, note=self.component or self.logical_id)

    def goes(self, asked: Asked) -> bool:
        """Return whether it was asked for to go."""
        if self.type == LOG_GROUP:
            return asked.logs
        return bool(self.component) and self.component in asked.storage


def find(account: Account, plan: ClusterPlan, stacks: Mapping[str, Stack]) -> tuple[Retained, ...]:
    """Return what the stacks of a cluster keep, and what those that are gone have left.

    CloudFormation tells of a stack for 90 days after its deletion.

    Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_ListStackResources.html

    Args:
        account: The account.
        plan: The cluster.
        stacks: Its stacks that are there.
    """
    found: dict[str, Retained] = {}
    held: set[str] = set()
    for stack in stacks.values():
        held |= {each.id for each in stack.resources}
        for each in stack.retained:
            found[each.id] = Retained(
                stack=stack.name, type=each.type, logical_id=each.logical_id, id=each.id
            )
    for each in _left_behind(account, plan.name):
        if each.id not in held and look(account, each.type, each.id) != "gone":
            found[each.id] = each
    for type, id in made_by_services(account, plan):
        if id not in held:
            found.setdefault(id, Retained(stack="", type=type, logical_id="", id=id))
    named = (replace(each, component=component(plan, each)) for each in found.values())
    return tuple(each for each in named if each.type not in PARTS)


def _left_behind(account: Account, cluster: str) -> Iterator[Retained]:
    """Yield what stacks have kept that are gone."""
    gone = account.ask_all(_LIST, "StackSummaries", StackStatusFilter=["DELETE_COMPLETE"])
    for stack in gone:
        if not is_of(stack.get("TemplateDescription"), cluster):
            continue
        held = account.ask_all(_RESOURCES, "StackResourceSummaries", StackName=stack["StackId"])
        for each in held:
            if each["ResourceStatus"] == "DELETE_SKIPPED" and each.get("PhysicalResourceId"):
                found = Retained(
                    stack=stack["StackName"],
                    type=each["ResourceType"],
                    logical_id=each["LogicalResourceId"],
                    id=each["PhysicalResourceId"],
                )
                if not found.type.startswith("Custom::") and found.type not in PARTS:
                    yield found


def made_by_services(account: Account, plan: ClusterPlan) -> Iterator[tuple[str, str]]:
    """Yield what services have made for a cluster, and no stack has: type and id.

    Log groups of the control plane, of metrics, of functions and of HyperPod; repositories that the
    cache of images fills.

    Args:
        account: The account.
        plan: The cluster.
    """
    functions = f"/aws/lambda/{plan.name}-"
    prefixes = [functions, f"/aws/eks/{plan.name}/", f"/aws/containerinsights/{plan.name}/"]
    if plan.hyperpod is not None:
        prefixes.append(f"/aws/sagemaker/Clusters/{plan.hyperpod.name}/")
    stacks = "|".join(map(re.escape, sorted(stack_names(plan))))
    # After its stack's name that of a function has one more hyphen: a name with more is one of
    # another cluster, whose name begins as that of the stack does.
    own = re.compile(rf"/aws/lambda/({stacks})-[A-Za-z0-9]+-[A-Za-z0-9]+")
    for prefix in prefixes:
        for group in account.ask_all(_LOG_GROUPS, "logGroups", logGroupNamePrefix=prefix):
            name = group["logGroupName"]
            if prefix != functions or own.fullmatch(name):
                yield LOG_GROUP, name
    repositories = [f"{plan.name}/"]
    if plan.image_cache is not None:
        repositories += [f"{rule.prefix}/" for rule in plan.image_cache.rules]
    for each in account.ask_all(_REPOSITORIES, "repositories"):
        if each["repositoryName"].startswith(tuple(repositories)):
            yield REPOSITORY, each["repositoryName"]


def component(plan: ClusterPlan, found: Retained) -> str:
    """Return what the cluster file calls a resource."""
    if found.type == REPOSITORY:
        # One that the cache of images fills may be called as one of the file is.
        owned = {names.repository(plan.name, each): each for each in plan.repositories}
        return owned.get(found.id, "")
    if found.stack != names.stack(plan.name, "storage"):
        return ""
    # The CDK leaves out of an id what is no letter and no digit.
    ids = {_plain(each.name): each.name for each in plan.lustre}
    ids |= {f"{_plain(each.name)}SecurityGroup": each.name for each in plan.lustre}
    ids |= {f"Buckets{_plain(each.name)}": each.name for each in plan.buckets}
    return ids.get(found.logical_id[:-_HASH], "")


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "", name)


def refuse_unknown(plan: ClusterPlan, asked: Asked) -> None:
    """Refuse names that are no storage of the cluster.

    Raises:
        QuestionError: One is none, or stands for two things; one line for each.
    """
    known = [*(each.name for each in plan.lustre), *(each.name for each in plan.buckets)]
    known += plan.repositories
    wrong = [
        f"--delete-storage: no file system, bucket or repository of the cluster file, got {name!r};"
        f" {'name one of ' + ', '.join(sorted(known)) if known else 'it has none: leave it out'}"
        for name in sorted(asked.storage - set(known))
    ]
    wrong += [
        f"--delete-storage: {name!r} is the name of two things; delete them by hand"
        for name in sorted(asked.storage)
        if [_plain(each) for each in known].count(_plain(name)) > 1
    ]
    if wrong:
        raise QuestionError(wrong)


def going(
    account: Account, found: Iterable[Retained], asked: Asked
) -> Iterator[tuple[Target, ...]]:
    """Yield what goes because it was asked for; the groups of file systems go after them."""
    targets = [
        RetainedTarget(account=account, type=each.type, id=each.id, note=each.component)
        for each in found
        if each.goes(asked)
    ]
    yield tuple(each for each in targets if each.type != SECURITY_GROUP)
    yield tuple(each for each in targets if each.type == SECURITY_GROUP)


def staying(found: Iterable[Retained], asked: Asked, plan: ClusterPlan) -> Iterator[Left]:
    """Yield what stays, with what it costs and what would remove it."""
    lustre = {each.name: each for each in plan.lustre}
    for each in found:
        if each.goes(asked):
            continue
        system = lustre.get(each.component) if each.type == FILE_SYSTEM else None
        price = (
            prices.of_type(each.type)
            if system is None
            else prices.of_lustre(system.capacity_gib, system.throughput_mbps_per_tib)
        )
        yield Left(
            thing=each.thing,
            why=_why(each, plan),
            command=_command(each, plan),
            price=price,
            paid=is_paid(each.type),
            asked=True,
        )


def pipeline(stack: Stack, region: str) -> Left:
    """Return that a pipeline stays, or what it looks at the cluster's account by.

    Args:
        stack: Its stack.
        region: Its Region.
    """
    return Left(
        thing=Thing(kind=STACK, id=stack.name),
        why="it belongs to a pipeline, which deploys the cluster again whenever it runs",
        command=f"aws cloudformation delete-stack --stack-name {stack.name} --region {region}",
        asked=True,
    )


def network(stack: Stack, region: str) -> Iterator[Left]:
    """Yield what stays because something in the VPC does.

    Args:
        stack: The stack of the network.
        region: Its Region.
    """
    yield Left(
        thing=Thing(kind=STACK, id=stack.name),
        why=f"what stays in its VPC needs it ({', '.join(sorted(_SHORT.values()))})",
        command=f"remove that, then aws cloudformation delete-stack --stack-name {stack.name} "
        f"--region {region}",
        paid=False,
        asked=True,
    )
    for each in stack.resources:
        price = prices.of_type(each.type)
        if price:
            yield Left(
                thing=each.thing,
                why=f"the stack {stack.name} stays",
                command="goes with the stack",
                price=price,
                asked=True,
                usd_per_hour=prices.per_hour(each.type),
            )


_SHORT: Mapping[str, str] = {
    FILE_SYSTEM: "file systems",
    DATABASE: "databases",
    DATABASE_INSTANCE: "their instances",
    SECURITY_GROUP: "their security groups",
}
assert set(_SHORT) == IN_VPC, "each kind that keeps a VPC has a name"


def _why(found: Retained, plan: ClusterPlan) -> str:
    if found.type in (FILE_SYSTEM, BUCKET):
        return "data"
    if found.type == REPOSITORY and found.component:
        return f"images; {_BLOCKS}"
    if found.id == names.control_plane_logs(plan.name):
        return f"logs; {_BLOCKS}"
    if not found.stack:
        return "a service made it, and deletes it never"
    return f"the stack {found.stack} retains it"


def _command(found: Retained, plan: ClusterPlan) -> str:
    by_hand = command(found.type, found.id, plan.region)
    if found.component:
        return f"--delete-storage {found.component}, or {by_hand}"
    return f"--delete-logs, or {by_hand}" if found.type == LOG_GROUP else by_hand
