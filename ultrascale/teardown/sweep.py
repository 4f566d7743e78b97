"""Looks for what is left of a cluster: what the plan keeps, and what is on no list.

It deletes nothing. What could not be asked is told: it may hold something that is paid for.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ultrascale.account import Account
from ultrascale.errors import UnansweredError
from ultrascale.plan import ClusterPlan
from ultrascale.teardown import prices
from ultrascale.teardown.backups import backups
from ultrascale.teardown.balancers import left_balancers
from ultrascale.teardown.gates import NO_CLUSTER, NO_HYPERPOD
from ultrascale.teardown.leftovers import (
    FUNCTION,
    Retained,
    described,
    file_systems,
    functions_among,
    gone_stacks,
    left_by,
    left_by_tags,
    left_file_systems,
    made_by_services,
)
from ultrascale.teardown.model import Left, Teardown, Thing
from ultrascale.teardown.retained import FILE_SYSTEM, command, is_known, is_paid, look
from ultrascale.teardown.stacks import STACK, is_of
from ultrascale.teardown.tagged import INSTANCE, tagged_questions

_AGAIN = "run the command again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """What was found.

    Attributes:
        left: Orphans, and what the plan kept; the dearest first.
        unknown: What could not be asked, and why: nobody knows what is left of that.
    """

    left: tuple[Left, ...]
    unknown: tuple[str, ...]

    @property
    def orphans(self) -> tuple[Left, ...]:
        """What nobody asked to keep."""
        return tuple(each for each in self.left if not each.asked)


def sweep(account: Account, plan: ClusterPlan, teardown: Teardown) -> Sweep:
    """Return what is left of a cluster.

    Args:
        account: Its account.
        plan: The cluster.
        teardown: What was to go and to stay.
    """
    left: dict[tuple[str, str], Left] = {}
    unknown: list[str] = []

    def add(found: Callable[[], Iterator[Left]]) -> None:
        try:
            for each in found():
                left.setdefault((each.thing.kind, each.thing.id), each)
        except UnansweredError as error:
            unknown.append(str(error))

    for each in (kept for kept in teardown.kept if kept.asked):
        add(partial(_still_there, account, each))
    for thing in sorted(teardown.things):
        if is_known(thing.kind):
            add(partial(_not_gone, account, plan, thing))
    for question in tagged_questions(account, plan.name):
        add(question)
    for other in (*_OTHERS, partial(_services, teardown)):
        add(partial(other, account, plan))
    return Sweep(
        left=tuple(sorted(left.values(), key=_dearness)), unknown=tuple(dict.fromkeys(unknown))
    )


def _dearness(each: Left) -> tuple[bool, float, bool, Left]:
    """Return what sorts the dearest first: instances are, whether their price is known or not."""
    return each.thing.kind != INSTANCE, -each.usd_per_hour, not each.paid, each


def _still_there(account: Account, each: Left) -> Iterator[Left]:
    if look(account, each.thing.kind, each.thing.id) != "gone":
        yield each


def _not_gone(account: Account, plan: ClusterPlan, thing: Thing) -> Iterator[Left]:
    """Yield what was to go: a driver may have failed that no tag tells of."""
    if look(account, thing.kind, thing.id) != "gone":
        is_system = thing.kind == FILE_SYSTEM
        systems: Mapping[str, Mapping[str, Any]] = file_systems(account) if is_system else {}
        found = Retained(stack="", type=thing.kind, logical_id="", id=thing.id)
        price, hourly = described(plan, found, systems).price
        yield Left(
            thing=thing,
            why="it was to go, and is there",
            command=f"{_AGAIN}, or {command(thing.kind, thing.id, account.region)}",
            price=price,
            paid=is_paid(thing.kind),
            usd_per_hour=hourly,
        )


def _stacks(account: Account, plan: ClusterPlan) -> Iterator[Left]:
    for each in account.ask_all(
        account.client("cloudformation").describe_stacks, lambda page: page["Stacks"]
    ):
        if is_of(each.get("Description"), plan.name):
            yield Left(
                thing=Thing(kind=STACK, id=each["StackName"], note=each["StackStatus"]),
                why=each.get("StackStatusReason", "the teardown has not come to it"),
                command=_AGAIN,
            )


def _clusters(account: Account, plan: ClusterPlan) -> Iterator[Left]:
    try:
        status = account.ask(account.client("eks").describe_cluster, name=plan.name)["cluster"][
            "status"
        ]
        price, hourly = prices.of_cluster(plan.control_plane.tier)
        yield Left(
            thing=Thing(kind="AWS::EKS::Cluster", id=plan.name, note=status),
            why="EKS has a cluster of this name",
            command=f"{_AGAIN}; where it is of no stack: aws eks delete-cluster --name {plan.name} "
            f"--region {plan.region}",
            price=price,
            usd_per_hour=hourly,
        )
    except UnansweredError as error:
        if error.code != NO_CLUSTER:
            raise


def _hyperpod(account: Account, plan: ClusterPlan) -> Iterator[Left]:
    if plan.hyperpod is None:
        return
    name = plan.hyperpod.name
    try:
        status = account.ask(account.client("sagemaker").describe_cluster, ClusterName=name)[
            "ClusterStatus"
        ]
    except UnansweredError as error:
        if error.code == NO_HYPERPOD:
            return
        raise
    yield Left(
        thing=Thing(kind="AWS::SageMaker::Cluster", id=name, note=status),
        why="SageMaker has a cluster of this name, with its nodes",
        command=f"{_AGAIN}; where it is of no stack: aws sagemaker delete-cluster --cluster-name "
        f"{name} --region {plan.region}",
    )


def _profiles(account: Account, plan: ClusterPlan) -> Iterator[Left]:
    # Source: https://karpenter.sh/docs/concepts/nodeclasses/#specrole
    path = f"/karpenter/{plan.region}/{plan.name}/"
    for each in account.ask_all(
        account.client("iam").list_instance_profiles,
        lambda page: page["InstanceProfiles"],
        PathPrefix=path,
    ):
        name = each["InstanceProfileName"]
        yield Left(
            thing=Thing(kind="AWS::IAM::InstanceProfile", id=name),
            why="Karpenter went before its EC2NodeClass",
            command=f"aws iam delete-instance-profile --instance-profile-name {name}, its role "
            "removed from it first",
            paid=False,
        )


def _file_systems(account: Account, plan: ClusterPlan) -> Iterator[Left]:
    systems = file_systems(account)
    for each in left_file_systems(plan, systems):
        yield _outlives(described(plan, each, systems), plan.region)


def _backups(account: Account, plan: ClusterPlan) -> Iterator[Left]:
    yield from backups(account, plan, frozenset(), asked=False)


def _gone_stacks(account: Account, plan: ClusterPlan) -> Iterator[Left]:
    for name, held in gone_stacks(account, plan.name):
        yield from _there(account, plan, left_by(name, held))


def _tagged(account: Account, plan: ClusterPlan) -> Iterator[Left]:
    yield from _there(account, plan, left_by_tags(account, plan))


def _there(account: Account, plan: ClusterPlan, found: Iterable[Retained]) -> Iterator[Left]:
    for each in found:
        # A file system is found by its own tags, with its size.
        if each.type != FILE_SYSTEM and look(account, each.type, each.id) != "gone":
            yield _outlives(described(plan, each, {}), plan.region)


def _outlives(found: Retained, region: str) -> Left:
    price, hourly = found.price
    return Left(
        thing=found.thing,
        why=f"the stack {found.stack} has left it",
        command=command(found.type, found.id, region),
        price=price,
        paid=is_paid(found.type),
        usd_per_hour=hourly,
    )


def _services(teardown: Teardown, account: Account, plan: ClusterPlan) -> Iterator[Left]:
    functions = {each.id for each in teardown.things if each.kind == FUNCTION}
    for _, held in gone_stacks(account, plan.name):
        functions |= functions_among(held)
    for type, id in made_by_services(account, plan, functions):
        price, hourly = prices.of_type(type)
        yield Left(
            thing=Thing(kind=type, id=id),
            why="a service made it since the plan was printed, or a stack has left it",
            command=command(type, id, plan.region),
            price=price,
            usd_per_hour=hourly,
        )


_OTHERS = (
    _stacks,
    _clusters,
    _hyperpod,
    left_balancers,
    _profiles,
    _file_systems,
    _backups,
    _gone_stacks,
    _tagged,
)
