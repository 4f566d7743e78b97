"""Arguments of a construct in somebody else's app: judged together, and planned."""

import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import TypeVar
from weakref import WeakKeyDictionary

from aws_cdk import Reference, Stack, Stage, Token, Tokenization
from aws_cdk import aws_ec2 as ec2
from constructs import Construct, IConstruct

from ultrascale.documents import sequence
from ultrascale.errors import ArgumentError
from ultrascale.plan.arguments import (
    NAME,
    Part,
    Surroundings,
    name_zones,
    partition_of,
    plan_arguments,
    substituted,
)
from ultrascale.plan.model import ClusterPlan
from ultrascale_constructs.acknowledgment import nothing_accepted
from ultrascale_constructs.public.purchase import (
    CapacityBlock,
    CapacityReservation,
    TrainingPlan,
    block_keys,
    plan_keys,
    reservation_keys,
)

_PLAN = TypeVar("_PLAN")
_DIGITS = 8
_ENCODED = re.compile(r"\$\{Token\[[^\]]*\]\}")
_TAKEN: WeakKeyDictionary[IConstruct, dict[str, str]] = WeakKeyDictionary()


class Arguments:
    """The arguments of one construct.

    Whatever is wrong with them is collected, so that one error tells all of it. Values that
    CloudFormation alone knows are judged by their form no further, and stand in the plan as what
    `filled` replaces.

    Attributes:
        region: Region of the stack, None where it leaves it open.
        partition: Partition of that Region; ``aws`` where nobody knows.
    """

    def __init__(self, construct: Construct) -> None:
        self._construct = construct
        self._mistakes: list[str] = []
        self._tokens: dict[str, str] = {}
        stack = Stack.of(construct)
        self.region = None if Token.is_unresolved(stack.region) else stack.region
        self.partition = partition_of(self.region)

    def refuse(self, argument: str, wrong: str, todo: str, *, got: str = "") -> None:
        """Add a mistake: what is wrong with ``argument``, its value, and what to do."""
        text = f"{wrong}, got {got}" if got else wrong
        self._mistakes.append(f"{argument}: {text}; {todo}")

    def lists(self, **values: object) -> None:
        """Refuse values that are no lists; text, which Python takes for a list, is none."""
        for argument, value in values.items():
            if not isinstance(value, list | tuple):
                self.refuse(argument, "not a list", "write it in brackets", got=repr(value))

    def flags(self, **values: object) -> None:
        """Refuse values that are neither true nor false."""
        for argument, value in values.items():
            if not isinstance(value, bool):
                self.refuse(argument, "not a flag", "write True or False", got=repr(value))

    def construct(self, argument: str, value: object, what: str, attribute: str) -> None:
        """Refuse what is no construct: a value without ``attribute``.

        Args:
            argument: The argument.
            value: Its value.
            what: How to get a right one.
            attribute: An attribute that each of its kind has.
        """
        if not hasattr(value, attribute):
            self.refuse(argument, "not a construct of the CDK", what, got=repr(value))

    def subnets(self, argument: str, values: object) -> None:
        """Refuse items of a list that are no subnets."""
        for number, value in enumerate(sequence(values)):
            what = "pass such as vpc.private_subnets"
            self.construct(f"{argument}[{number}]", value, what, "subnet_id")

    def value(self, argument: str, value: object, kind: type) -> None:
        """Refuse what is no ``kind``."""
        if not isinstance(value, kind):
            name = kind.__name__
            self.refuse(argument, f"not a {name}", f"write {name}(…)", got=repr(value))

    def values(self, argument: str, values: object, kind: type) -> None:
        """Refuse items of a list that are no ``kind``."""
        for number, value in enumerate(sequence(values)):
            self.value(f"{argument}[{number}]", value, kind)

    def text(self, argument: str, value: object) -> None:
        """Refuse what is no text, or an empty one."""
        if not isinstance(value, str) or not value:
            self.refuse(argument, "not a name", "write it in quotes", got=repr(value))

    def count(self, argument: str, value: object) -> None:
        """Refuse what is no count of 1 at least; None stands for none."""
        if value is not None and not (isinstance(value, int) and value > 0):
            self.refuse(argument, "not a count", "write at least 1", got=repr(value))

    def stop(self) -> None:
        """Stop where an argument is of a wrong kind: nothing else can be judged then.

        Raises:
            ArgumentError: One is; one line for each.
        """
        if self._mistakes:
            path = self._construct.node.path
            raise ArgumentError(f"{path}: {line}" for line in self._mistakes)

    def known(self, value: object, stand_in: str) -> object:
        """Return ``value``; for a token ``stand_in``, which has the form that is asked for."""
        if isinstance(value, str) and Token.is_unresolved(value):
            self._tokens[stand_in] = value
            return stand_in
        return value

    def zones(self, subnets: Sequence[ec2.ISubnet], argument: str = "subnets") -> list[str]:
        """Return the zone of each of ``subnets``, which need not be known yet."""
        if not subnets:
            self.refuse(argument, "no subnet", "name at least one")
            return ["${Zone}"]
        zones: list[str] = []
        for number, subnet in enumerate(subnets):
            try:
                zones.append(subnet.availability_zone)
            except RuntimeError:
                if len(subnets) > 1:
                    self.refuse(
                        f"{argument}[{number}]",
                        "a subnet whose zone is not known",
                        "use Subnet.from_subnet_attributes(subnet_id=…, availability_zone=…)",
                        got=repr(subnet.subnet_id),
                    )
                zones.append("${Zone}")
        return zones

    def purchase(
        self,
        *,
        capacity_block: CapacityBlock | None = None,
        capacity_reservation: CapacityReservation | str | None = None,
        training_plan: TrainingPlan | None = None,
        spot: bool = False,
        stand_in: str = "0",
    ) -> tuple[Mapping[str, object] | None, str]:
        """Return how nodes are bought, as a pool's ``purchase``, and the argument that says so."""
        given = {
            "capacity_block": capacity_block is not None,
            "capacity_reservation": capacity_reservation is not None,
            "training_plan": training_plan is not None,
            "spot": spot,
        }
        named = [name for name, stated in given.items() if stated]
        if len(named) > 1:
            self.refuse(
                " and ".join(named), "capacity bought in two ways", f"keep one, such as {named[0]}"
            )
        number = f"cr-0000000000000{stand_in:0>4}"
        if isinstance(capacity_block, CapacityBlock):
            keys = block_keys(capacity_block)
            return {**keys, "reservation": self.known(keys["reservation"], number)}, named[0]
        if capacity_reservation is not None:
            if not isinstance(capacity_reservation, CapacityReservation):
                capacity_reservation = CapacityReservation(reservation=capacity_reservation)
            keys = reservation_keys(capacity_reservation)
            group = f"arn:aws:resource-groups:us-east-1:111122223333:group/stand-in-{stand_in:0>4}"
            return {
                **keys,
                "reservation": self.known(keys["reservation"], number),
                "resource_group": self.known(keys["resource_group"], group),
            }, named[0]
        if isinstance(training_plan, TrainingPlan):
            keys = plan_keys(training_plan)
            arn = f"arn:aws:sagemaker:us-east-1:111122223333:training-plan/stand-in-{stand_in:0>4}"
            return {**keys, "plan": self.known(keys["plan"], arn)}, named[0]
        if capacity_block is not None:
            self.value("capacity_block", capacity_block, CapacityBlock)
        if training_plan is not None:
            self.value("training_plan", training_plan, TrainingPlan)
        return ({"option": "spot"} if spot else None), named[0] if named else "purchase"

    def plan(
        self,
        parts: Sequence[Part],
        *,
        zones: Sequence[str] = (),
        instance_types: Sequence[str] = (),
        name: str | None = None,
        kubernetes_version: str | None = None,
        vpc_cidr: str | None = None,
        own_zones: bool = False,
    ) -> ClusterPlan:
        """Return the plan of a cluster that has ``parts``.

        Args:
            parts: The parts, with zones as ``zones`` has them.
            zones: Zones of the subnets.
            instance_types: Instance types that the arguments name.
            name: Name of the cluster; None where it is not judged.
            kubernetes_version: Its minor version; None for the default.
            vpc_cidr: Range of its VPC; None where it is not known.
            own_zones: Whether ``zones`` are those of the control plane.

        Raises:
            ArgumentError: Arguments are wrong; one line for each.
        """
        names = name_zones(zones, region=self.region, instance_types=instance_types)
        return plan_arguments(
            [_placed(part, names.by_zone) for part in parts],
            surroundings=Surroundings(
                source=self._construct.node.path,
                name=name,
                region=self.region,
                zones=zones,
                kubernetes_version=kubernetes_version,
                vpc_cidr=vpc_cidr,
                own_zones=own_zones,
            ),
            zones=names,
            mistakes=self._mistakes,
            unknown=dict.fromkeys(self._tokens, "a token"),
        )

    def filled(self, plan: _PLAN, *, name: str) -> _PLAN:
        """Return ``plan`` with the name of the cluster, and the tokens among the arguments."""
        return substituted(plan, {**self._tokens, NAME: name})

    def claim(self, kind: str, *, of: str, argument: str, todo: str) -> None:
        """Refuse a second construct of an app that claims what a cluster has once.

        Args:
            kind: What is claimed, in the words of the error.
            of: Name of the cluster, which another account or Region may have as well.
            argument: Argument to change.
            todo: What to do.
        """
        construct = self._construct
        stack = Stack.of(construct)
        place = [stack.resolve(part) for part in (stack.account, stack.region)]
        taken = _TAKEN.setdefault(Stage.of(construct) or construct.node.root, {})
        path = construct.node.path
        other = taken.setdefault(f"{kind} {identity(construct, of)} {place}", path)
        if other != path:
            self.refuse(argument, f"{other} has {kind} already", todo)

    def claim_pool(self, name: str, *, of: str) -> None:
        """Refuse a second pool of that name in a cluster."""
        kind, todo = (
            f"the pool {name!r} of this cluster",
            "give each pool of a cluster its own name",
        )
        self.claim(kind, of=of, argument="name", todo=todo)


def identity(scope: Construct, name: str) -> str:
    """Return what tells a name from others: where it is a reference, the address of its construct.

    References to equal constructs of two stacks resolve to the same logical id.

    Args:
        scope: Construct that refers to it.
        name: The name.
    """
    if not Token.is_unresolved(name):
        return name
    parts: list[str] = []
    for token in Tokenization.reverse_string(name).tokens:
        if isinstance(token, Reference):
            parts.append(token.target.node.addr)
        else:
            parts.append(str(Stack.of(scope).resolve(token)))
    # What stands between them tells one name of an account's roles from another.
    parts += filter(None, _ENCODED.split(name))
    return " ".join(parts)


def digest(scope: Construct, name: str) -> str:
    """Return a short hash of `identity`, for the id of what a stack has once for a cluster."""
    return sha256(identity(scope, name).encode()).hexdigest()[:_DIGITS]


@contextmanager
def defining() -> Generator[None]:
    """Define constructs of ours in an app of somebody else: no finding is accepted for them."""
    with nothing_accepted():
        yield


def _placed(part: Part, zones: Mapping[str, str]) -> Part:
    """Return ``part`` with its zones by the names that the plan has for them."""
    keys = dict(part.keys)
    if (zone := keys.get("zone")) is not None:
        keys["zone"] = zones[str(zone)]
    if "zones" in keys:
        keys["zones"] = list(dict.fromkeys(zones[str(each)] for each in sequence(keys["zones"])))
    return Part(at=part.at, keys=keys, names=part.names, prefix=part.prefix)
