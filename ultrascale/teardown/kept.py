"""Resources that stay: storage and logs that the user did not name, pipelines, and the VPC."""

import re
from collections.abc import Iterable, Iterator, Sequence

from ultrascale.account import Account
from ultrascale.errors import QuestionError
from ultrascale.frozen import Frozen
from ultrascale.plan import ClusterPlan, names
from ultrascale.plan.stacks import stack_of
from ultrascale.teardown import prices
from ultrascale.teardown.ec2 import SECURITY_GROUP, in_vpc
from ultrascale.teardown.inventory import ResourceTarget, command, inventory, is_paid
from ultrascale.teardown.model import Left, Target, Thing
from ultrascale.teardown.retained import LOG_GROUP, REPOSITORY, Retained, existing_storage, plain
from ultrascale.teardown.stacks import STACK, Stack
from ultrascale.teardown.storage import BUCKET, FILE_SYSTEM

# Reason for kinds whose resources have a fixed name.
_BLOCKS = (
    "a deployment under the same name fails while it is there, unless it takes it over "
    "(`cdk deploy --import-existing-resources`)"
)
_STORAGE = frozenset({FILE_SYSTEM, BUCKET, REPOSITORY})
# Kinds that a user may also name by id: a resource and its replaced predecessor share a name.
_NAMED = frozenset({*_STORAGE, SECURITY_GROUP})
# Words for the kinds that keep a VPC.
_IN_VPC = ("databases", "file systems", "their instances", "their security groups")
_ID = re.compile(r"(fs|sg)-[0-9a-f]+")
# A bucket's name begins with at least this many characters of its stack's name.
_BEGIN = 20


class Asked(Frozen):
    """The resources that the user wants to delete although they would stay."""

    # File systems, buckets and repositories, by their names in the cluster file or by their ids.
    storage: frozenset[str] = frozenset()
    logs: bool = False  # Whether log groups go


def refuse_unknown(plan: ClusterPlan, asked: Asked) -> None:
    """Refuse names that no storage of the cluster can have, before AWS is asked.

    Raises:
        QuestionError: No storage has the name, or two have it; one line for each.
    """
    named = [each.name for each in (*plan.storage.existing_lustre, *plan.storage.existing_buckets)]
    existing = existing_storage(plan.storage).union(named)
    known = [
        *(system.name for system in plan.storage.lustre),
        *(bucket.name for bucket in plan.storage.buckets),
    ]
    known += plan.images.repositories
    there = f"name one of {', '.join(sorted(known))}" if known else "it has none: leave it out"
    of_bucket = stack_of(plan.name, "storage")[:_BEGIN]
    repositories = {names.repository(plan.name, name) for name in plan.images.repositories}
    wrong = [
        f"--delete-storage: no file system, bucket or repository of the cluster file, got {name!r};"
        f" {there}"
        for name in sorted(asked.storage - repositories - set(known) - existing)
        if not _ID.fullmatch(name) and not name.startswith(of_bucket)
    ]
    wrong += [
        f"--delete-storage: {name!r} exists by the cluster file, which therefore deletes it never; "
        "leave it out"
        for name in sorted(asked.storage & existing - set(known))
    ]
    wrong += [
        f"--delete-storage: {name!r} is the name of two things; name the one by its id, which "
        "--dry-run prints"
        for name in sorted(asked.storage)
        if [plain(other) for other in known].count(plain(name)) > 1
    ]
    if wrong:
        raise QuestionError(wrong)


def chosen_ids(resources: Sequence[Retained], asked: Asked, cluster_name: str) -> frozenset[str]:
    """Return the ids of the resources that go at the user's request.

    The security group of file systems goes with the last one of them.

    Args:
        resources: Resources that would stay.
        asked: The user's choice.
        cluster_name: Name of the cluster.

    Raises:
        QuestionError: A name stands for more than one thing.
    """
    wrong: list[str] = []
    ids = {resource.id for resource in resources if resource.type == LOG_GROUP and asked.logs}
    for name in sorted(asked.storage):
        named = [resource for resource in resources if _is_named(resource, name, cluster_name)]
        if len(named) > 1:
            told = "; ".join(str(resource.thing) for resource in named)
            wrong.append(
                f"--delete-storage: {name!r} is the name of {len(named)} things; name each that is "
                f"to go by its id: {told}"
            )
        ids |= {resource.id for resource in named}
    if wrong:
        raise QuestionError(wrong)
    return frozenset(
        ids
        | {resource.id for resource in resources if _goes_along(resource, resources, ids, asked)}
    )


def unknown_names(
    resources: Iterable[Retained], asked: Asked, cluster_name: str
) -> tuple[str, ...]:
    """Return the names that the user gave and no resource has."""
    candidates = tuple(resources)
    return tuple(
        name
        for name in sorted(asked.storage)
        if not any(_is_named(resource, name, cluster_name) for resource in candidates)
    )


def _is_named(resource: Retained, name: str, cluster_name: str) -> bool:
    if resource.component == name and resource.type in _STORAGE:
        return True
    return resource.id == name and _has_id(resource, cluster_name)


def _has_id(resource: Retained, name: str) -> bool:
    """Return whether a resource may be named by id; a foreign repository's id looks like a name."""
    if resource.type == REPOSITORY:
        return bool(resource.component)
    return resource.type in _NAMED and resource.stack == stack_of(name, "storage")


def _goes_along(
    group: Retained, resources: Iterable[Retained], ids: set[str], asked: Asked
) -> bool:
    """Return whether a security group goes: no file system of its name stays."""
    if group.type != SECURITY_GROUP or not group.component:
        return False
    systems = [
        system
        for system in resources
        if system.type == FILE_SYSTEM and system.component == group.component
    ]
    if not systems:
        return group.component in asked.storage
    return all(system.id in ids for system in systems)


def chosen_targets(
    account: Account, resources: Iterable[Retained], ids: frozenset[str]
) -> Iterator[tuple[Target, ...]]:
    """Yield the targets of the resources that go at the user's request, security groups last.

    Args:
        account: The account.
        resources: Resources that would stay.
        ids: Ids of the resources that go.
    """
    targets = [
        ResourceTarget(account=account, thing=resource.thing)
        for resource in resources
        if resource.id in ids
    ]
    yield tuple(target for target in targets if target.thing.kind != SECURITY_GROUP)
    yield tuple(target for target in targets if target.thing.kind == SECURITY_GROUP)


def staying_resources(
    resources: Sequence[Retained], ids: frozenset[str], name: str, region: str
) -> Iterator[Left]:
    """Yield the resources that stay, with their price and the command that deletes them.

    Args:
        resources: Resources that would stay.
        ids: Ids of the resources that go.
        name: Name of the cluster.
        region: Region of the cluster.
    """
    for resource in resources:
        if resource.id not in ids:
            price, hourly = resource.price
            yield Left(
                thing=resource.thing,
                why=_reason_it_stays(resource, name),
                command=_command(resource, resources, name, region),
                price=price,
                paid=is_paid(resource.type),
                asked=True,
                usd_per_hour=hourly,
            )


def _reason_it_stays(resource: Retained, name: str) -> str:
    if resource.owner:
        return f"the stack {resource.owner} has it, which is not of this cluster"
    if resource.type in (FILE_SYSTEM, BUCKET):
        return "data"
    if resource.type == REPOSITORY and resource.component:
        return f"images; {_BLOCKS}"
    if resource.id == names.control_plane_logs(name):
        return f"logs; {_BLOCKS}"
    if not resource.stack:
        return "a service made it, and deletes it never"
    return f"the stack {resource.stack} retains it"


def _command(
    resource: Retained, resources: Iterable[Retained], cluster_name: str, region: str
) -> str:
    by_hand = command(resource.type, resource.id, region)
    if resource.owner:
        return "goes with that stack"
    if resource.type == LOG_GROUP:
        return f"--delete-logs, or {by_hand}"
    if not _has_id(resource, cluster_name):
        return by_hand
    alike = [
        other
        for other in resources
        if other.component == resource.component and other.type in _STORAGE
    ]
    if resource.type == SECURITY_GROUP and resource.component:
        return f"goes with its file system, or {by_hand}"
    name = resource.component if resource.component and len(alike) == 1 else resource.id
    return f"--delete-storage {name}, or {by_hand}"


def keeps_vpc(resource: Retained) -> bool:
    """Return whether a VPC cannot be deleted while a resource is there."""
    kind = inventory().get(resource.type)
    return kind is not None and kind.keeps_vpc


def kept_network(account: Account, stack: Stack, vpc: str) -> Iterator[Left]:
    """Yield the network's stack and its resources, which stay while something is in the VPC.

    Args:
        account: The account.
        stack: The stack of the network.
        vpc: Id of the VPC.
    """
    yield Left(
        thing=Thing(kind=STACK, id=stack.name),
        why=f"resources in its VPC need it ({', '.join(_IN_VPC)})",
        command=f"remove that, then aws cloudformation delete-stack --stack-name {stack.name} "
        f"--region {account.region}",
        paid=False,
        asked=True,
    )
    endpoints = account.ask_all(
        account.client("ec2").describe_vpc_endpoints,
        lambda page: page["VpcEndpoints"],
        Filters=in_vpc(vpc),
    )
    zones = {
        endpoint["VpcEndpointId"]: len(endpoint.get("SubnetIds", []))
        for endpoint in endpoints
        if endpoint["VpcEndpointType"] == "Interface"
    }
    for resource in stack.resources:
        count = zones.get(resource.id, 0)
        price, hourly = prices.of_endpoint(count) if count else prices.of_type(resource.type)
        if price:
            yield Left(
                thing=resource.thing,
                why=f"the stack {stack.name} stays",
                command="goes with the stack",
                price=price,
                asked=True,
                usd_per_hour=hourly,
            )
