"""What stays of a cluster, what of that goes because it was named, and what staying costs."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ultrascale.account import Account
from ultrascale.errors import QuestionError
from ultrascale.plan import ClusterPlan, names
from ultrascale.plan.stacks import stack_of
from ultrascale.teardown.leftovers import Retained, plain
from ultrascale.teardown.model import Left, Target
from ultrascale.teardown.retained import (
    BUCKET,
    FILE_SYSTEM,
    LOG_GROUP,
    REPOSITORY,
    SECURITY_GROUP,
    RetainedTarget,
    command,
    is_paid,
)

# Of what has a fixed name.
_BLOCKS = (
    "a deployment under the same name fails while it is there, unless it takes it over "
    "(`cdk deploy --import-existing-resources`)"
)
_STORAGE = frozenset({FILE_SYSTEM, BUCKET, REPOSITORY})
# What can be named by its id, too: what was replaced has the name of what replaced it.
_NAMED = frozenset({*_STORAGE, SECURITY_GROUP})
_ID = re.compile(r"(fs|sg)-[0-9a-f]+")
# CloudFormation begins the name of a bucket with so much of its stack's at least.
_BEGIN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the user wants to go that would stay.

    Attributes:
        storage: File systems, buckets and repositories, by their names in the cluster file or by
            their ids.
        logs: Whether log groups go.
    """

    storage: frozenset[str] = frozenset()
    logs: bool = False


def refuse_unknown(plan: ClusterPlan, asked: Asked) -> None:
    """Refuse names that can be no storage of the cluster, before anything is asked.

    Raises:
        QuestionError: One is none, or stands for two things; one line for each.
    """
    known = [*(each.name for each in plan.lustre), *(each.name for each in plan.buckets)]
    known += plan.repositories
    there = f"name one of {', '.join(sorted(known))}" if known else "it has none: leave it out"
    of_bucket = stack_of(plan.name, "storage")[:_BEGIN]
    repositories = {names.repository(plan.name, each) for each in plan.repositories}
    wrong = [
        f"--delete-storage: no file system, bucket or repository of the cluster file, got {name!r};"
        f" {there}"
        for name in sorted(asked.storage - repositories - set(known))
        if not _ID.fullmatch(name) and not name.startswith(of_bucket)
    ]
    wrong += [
        f"--delete-storage: {name!r} is the name of two things; name the one by its id, which "
        "--dry-run prints"
        for name in sorted(asked.storage)
        if [plain(each) for each in known].count(plain(name)) > 1
    ]
    if wrong:
        raise QuestionError(wrong)


def chosen(found: Sequence[Retained], asked: Asked, plan: ClusterPlan) -> frozenset[str]:
    """Return the ids of what goes because it was asked for.

    The security group of file systems goes with the last one of them.

    Args:
        found: What would stay.
        asked: What is to go of that.
        plan: The cluster.

    Raises:
        QuestionError: A name stands for more than one thing.
    """
    wrong: list[str] = []
    ids = {each.id for each in found if each.type == LOG_GROUP and asked.logs}
    for name in sorted(asked.storage):
        named = [each for each in found if _is_named(each, name, plan)]
        if len(named) > 1:
            told = "; ".join(str(each.thing) for each in named)
            wrong.append(
                f"--delete-storage: {name!r} is the name of {len(named)} things; name each that is "
                f"to go by its id: {told}"
            )
        ids |= {each.id for each in named}
    if wrong:
        raise QuestionError(wrong)
    return frozenset(ids | {each.id for each in found if _goes_along(each, found, ids, asked)})


def absent(found: Iterable[Retained], asked: Asked, plan: ClusterPlan) -> tuple[str, ...]:
    """Return the names that were asked for and stand for nothing that is there.

    Args:
        found: What would stay.
        asked: What is to go of that.
        plan: The cluster.
    """
    every = tuple(found)
    return tuple(
        name
        for name in sorted(asked.storage)
        if not any(_is_named(each, name, plan) for each in every)
    )


def _is_named(found: Retained, name: str, plan: ClusterPlan) -> bool:
    if found.component == name and found.type in _STORAGE:
        return True
    return found.id == name and _has_id(found, plan)


def _has_id(found: Retained, plan: ClusterPlan) -> bool:
    """Return whether a resource can be named by its id, which repositories of others look like."""
    if found.type == REPOSITORY:
        return bool(found.component)
    return found.type in _NAMED and found.stack == stack_of(plan.name, "storage")


def _goes_along(group: Retained, found: Iterable[Retained], ids: set[str], asked: Asked) -> bool:
    """Return whether a security group goes, since no file system of its name stays."""
    if group.type != SECURITY_GROUP or not group.component:
        return False
    systems = [
        each for each in found if each.type == FILE_SYSTEM and each.component == group.component
    ]
    if not systems:
        return group.component in asked.storage
    return all(each.id in ids for each in systems)


def going(
    account: Account, found: Iterable[Retained], ids: frozenset[str]
) -> Iterator[tuple[Target, ...]]:
    """Yield what goes because it was asked for; the groups of file systems go after them.

    Args:
        account: The account.
        found: What would stay.
        ids: What of that goes.
    """
    targets = [
        RetainedTarget(account=account, type=each.type, id=each.id, note=each.thing.note)
        for each in found
        if each.id in ids
    ]
    yield tuple(each for each in targets if each.type != SECURITY_GROUP)
    yield tuple(each for each in targets if each.type == SECURITY_GROUP)


def staying(found: Sequence[Retained], ids: frozenset[str], plan: ClusterPlan) -> Iterator[Left]:
    """Yield what stays, with what it costs and what would remove it.

    Args:
        found: What would stay.
        ids: What of that goes.
        plan: The cluster.
    """
    for each in found:
        if each.id not in ids:
            price, hourly = each.price
            yield Left(
                thing=each.thing,
                why=_why(each, plan),
                command=_command(each, found, plan),
                price=price,
                paid=is_paid(each.type),
                asked=True,
                usd_per_hour=hourly,
            )


def _why(found: Retained, plan: ClusterPlan) -> str:
    if found.owner:
        return f"the stack {found.owner} has it, which is not of this cluster"
    if found.type in (FILE_SYSTEM, BUCKET):
        return "data"
    if found.type == REPOSITORY and found.component:
        return f"images; {_BLOCKS}"
    if found.id == names.control_plane_logs(plan.name):
        return f"logs; {_BLOCKS}"
    if not found.stack:
        return "a service made it, and deletes it never"
    return f"the stack {found.stack} retains it"


def _command(each: Retained, found: Iterable[Retained], plan: ClusterPlan) -> str:
    by_hand = command(each.type, each.id, plan.region)
    if each.owner:
        return "goes with that stack"
    if each.type == LOG_GROUP:
        return f"--delete-logs, or {by_hand}"
    if not _has_id(each, plan):
        return by_hand
    alike = [e for e in found if e.component == each.component and e.type in _STORAGE]
    if each.type == SECURITY_GROUP and each.component:
        return f"goes with its file system, or {by_hand}"
    name = each.component if each.component and len(alike) == 1 else each.id
    return f"--delete-storage {name}, or {by_hand}"
