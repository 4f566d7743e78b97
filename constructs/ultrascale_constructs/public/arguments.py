"""Arguments of a construct in a user's app: all are checked together, and then planned."""

import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from ipaddress import IPv4Network
from weakref import WeakKeyDictionary

from aws_cdk import Reference, Stack, Stage, Token, Tokenization
from aws_cdk import aws_ec2 as ec2
from constructs import Construct, IConstruct
from msgspec.structs import replace

from ultrascale import config
from ultrascale.documents import mapping, sequence
from ultrascale.errors import ArgumentError, CatalogError
from ultrascale.frozen import Frozen
from ultrascale.plan.mistakes import all_mistakes
from ultrascale.plan.model import PoolPlan
from ultrascale.plan.pools.pool import plan_pool
from ultrascale.plan.zones import name_zones, partition_of, zone_mistakes
from ultrascale_constructs.acknowledgment import nothing_accepted
from ultrascale_constructs.public.purchase import (
    CapacityBlock,
    CapacityReservation,
    TrainingPlan,
    block_keys,
    plan_keys,
    reservation_keys,
)

_CLUSTER = "cluster-of-the-app"
_ENV: config.KeyPath = ("env",)
THIS_POOL: config.KeyPath = ("this pool",)
"""Placeholder for the construct's own pool in messages about other arguments."""
_DIGITS = 8
_ENCODED = re.compile(r"\$\{Token\[[^\]]*\]\}")
_TAKEN: WeakKeyDictionary[IConstruct, dict[str, str]] = WeakKeyDictionary()


_RESERVED_OPTIONS = frozenset({"capacity-block", "odcr", "training-plan"})


class Arguments:
    """The arguments of one construct.

    All mistakes are collected, so that a single error lists them. A value that only CloudFormation
    knows is checked by a stand-in: a text of the value's form.

    Attributes:
        region: Region of the stack; None for a stack without a Region.
        partition: Partition of that Region; ``aws`` if it is unknown.
    """

    def __init__(self, construct: Construct) -> None:
        self._construct = construct
        self._mistakes: list[str] = []
        self._tokens: dict[str, str] = {}
        stack = Stack.of(construct)
        self.region = None if Token.is_unresolved(stack.region) else stack.region
        self.partition = partition_of(self.region)

    def refuse(self, argument: str, wrong: str, todo: str, *, got: str = "") -> None:
        """Add a mistake: what is wrong with ``argument``, its value, and the remedy."""
        text = f"{wrong}, got {got}" if got else wrong
        self._mistakes.append(f"{argument}: {text}; {todo}")

    def lists(self, **values: object) -> None:
        """Refuse values that are no lists, even text, which is a sequence in Python."""
        for argument, value in values.items():
            if not isinstance(value, list | tuple):
                self.refuse(argument, "not a list", "write it in brackets", got=repr(value))

    def flags(self, **values: object) -> None:
        """Refuse values that are neither true nor false."""
        for argument, value in values.items():
            if not isinstance(value, bool):
                self.refuse(argument, "not a flag", "write True or False", got=repr(value))

    def construct(self, argument: str, value: object, what: str, attribute: str) -> None:
        """Refuse a value that is no construct, as it lacks ``attribute``.

        Args:
            argument: The argument.
            value: Its value.
            what: Words for how to get a right value.
            attribute: An attribute that all constructs of its kind have.
        """
        if not hasattr(value, attribute):
            self.refuse(argument, "not a construct of the CDK", what, got=repr(value))

    def subnets(self, argument: str, values: object) -> None:
        """Refuse items of a list that are no subnets."""
        for number, value in enumerate(sequence(values)):
            what = "pass such as vpc.private_subnets"
            self.construct(f"{argument}[{number}]", value, what, "subnet_id")

    def value(self, argument: str, value: object, kind: type) -> None:
        """Refuse a value that is no ``kind``."""
        if not isinstance(value, kind):
            name = kind.__name__
            self.refuse(argument, f"not a {name}", f"write {name}(…)", got=repr(value))

    def values(self, argument: str, values: object, kind: type) -> None:
        """Refuse items of a list that are no ``kind``."""
        for number, value in enumerate(sequence(values)):
            self.value(f"{argument}[{number}]", value, kind)

    def text(self, argument: str, value: object) -> None:
        """Refuse a value that is no text, or empty."""
        if not isinstance(value, str) or not value:
            self.refuse(argument, "not a name", "write it in quotes", got=repr(value))

    def count(self, argument: str, value: object) -> None:
        """Refuse a value that is no count from 1 up; None is allowed."""
        if value is not None and not (isinstance(value, int) and value > 0):
            self.refuse(argument, "not a count", "write at least 1", got=repr(value))

    def stop(self) -> None:
        """Raise the error if an argument is of a wrong kind: nothing else can be checked then.

        Raises:
            ArgumentError: Arguments are of a wrong kind; one line for each.
        """
        if self._mistakes:
            path = self._construct.node.path
            raise ArgumentError(f"{path}: {line}" for line in self._mistakes)

    def known(self, value: object, form: str) -> object:
        """Return ``value``; if it is a token, return its stand-in.

        Args:
            value: The value.
            form: The required form, with ``{partition}``, ``{region}`` and ``{digest}``, eight
                digits that distinguish tokens.
        """
        if isinstance(value, str) and Token.is_unresolved(value):
            return _Unknown(token=value, form=form, digest=digest(self._construct, value))
        return value

    def zones(self, subnets: Sequence[ec2.ISubnet], argument: str = "subnets") -> list[str]:
        """Return the zone of each of ``subnets``, or a stand-in for an unknown zone."""
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

    @staticmethod
    def role(purchase: Mapping[str, object] | None) -> str:
        """Return the role of a pool that states none, as `ultrascale advise` writes it.

        Empty nodes of a burst pool go, and what is reserved is paid on without them.
        """
        option = None if purchase is None else purchase.get("option")
        return "reserved" if option in _RESERVED_OPTIONS else "burst"

    def purchase(
        self,
        *,
        capacity_block: CapacityBlock | None = None,
        capacity_reservation: CapacityReservation | str | None = None,
        training_plan: TrainingPlan | None = None,
        spot: bool = False,
    ) -> tuple[Mapping[str, object] | None, str]:
        """Return a pool's ``purchase`` key, and the name of the argument that states it."""
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
        number = "cr-000000000{digest}"
        if isinstance(capacity_block, CapacityBlock):
            keys = block_keys(capacity_block)
            return {**keys, "reservation": self.known(keys["reservation"], number)}, named[0]
        if capacity_reservation is not None:
            if not isinstance(capacity_reservation, CapacityReservation):
                capacity_reservation = CapacityReservation(reservation=capacity_reservation)
            keys = reservation_keys(capacity_reservation)
            group = "arn:{partition}:resource-groups:{region}:111122223333:group/{digest}"
            return {
                **keys,
                "reservation": self.known(keys["reservation"], number),
                "resource_group": self.known(keys["resource_group"], group),
            }, named[0]
        if isinstance(training_plan, TrainingPlan):
            keys = plan_keys(training_plan)
            arn = "arn:{partition}:sagemaker:{region}:111122223333:training-plan/{digest}"
            return {**keys, "plan": self.known(keys["plan"], arn)}, named[0]
        if capacity_block is not None:
            self.value("capacity_block", capacity_block, CapacityBlock)
        if training_plan is not None:
            self.value("training_plan", training_plan, TrainingPlan)
        return ({"option": "spot"} if spot else None), named[0] if named else "purchase"

    def judge(
        self,
        *stated: config.Stated,
        zones: Sequence[str] = (),
        instance_types: Sequence[str] = (),
        name: str | None = None,
        kubernetes: Mapping[str, object] | None = None,
        vpc_cidr: IPv4Network | None = None,
        own_zones: bool = False,
    ) -> config.StatedReading:
        """Check the parts of a cluster file that the arguments state, with Region and Kubernetes.

        Args:
            stated: The parts, with zones as in ``zones``.
            zones: Zones of the subnets.
            instance_types: Instance types that the arguments name.
            name: Name of the cluster; None where it is not checked.
            kubernetes: Keys of the cluster's control plane, as far as they are known.
            vpc_cidr: Range of the cluster's VPC; None if it is not known.
            own_zones: Whether ``zones`` are the control plane's.

        Raises:
            ArgumentError: Arguments are wrong; one line for each,
                ``path: argument: what is wrong, got VALUE; what to do``.
        """
        place = name_zones(zones, region=self.region, instance_types=instance_types)
        network = config.Network(
            vpc_cidr=vpc_cidr, zones=tuple(dict.fromkeys(place.by_zone.values()))
        )
        surroundings = (
            config.Stated(
                kind=config.Identity,
                at=_ENV,
                keys={"name": _CLUSTER if name is None else name, "region": place.region},
                names={("name",): "name", ("region",): "env.region"},
            ),
            config.Stated(
                kind=config.Kubernetes,
                at=("kubernetes",),
                keys=self._with_stand_ins(kubernetes or {}, place.region),
                names={
                    ("version",): "kubernetes_version",
                    ("endpoint", "public_cidrs"): "public_cidrs",
                },
            ),
        )
        parts = [
            replace(
                part,
                keys=self._with_stand_ins(
                    _with_named_zones(part.keys, place.by_zone), place.region
                ),
            )
            for part in stated
        ]
        reading = config.read_stated(
            (*surroundings, *parts),
            around=(network, config.Images(), config.Scheduling()),
            unknown=self._tokens.keys(),
        )
        for identity in reading.every(config.Identity):
            self._judge_zones(network, identity, own=own_zones)
        self._mistakes += reading.lines(all_mistakes(reading))
        self.stop()
        return reading

    def _judge_zones(
        self, network: config.Network, identity: config.Identity, *, own: bool
    ) -> None:
        for mistake in zone_mistakes(network, identity, own=own):
            _, *number = mistake.at
            zones = [network.zones[each] for each in number if isinstance(each, int)]
            got = config.spelled(zones[0] if zones else network.zones)
            self.refuse("subnets", mistake.wrong, mistake.todo, got=got)

    def _with_stand_ins(self, keys: Mapping[str, object], region: str) -> Mapping[str, object]:

        def stand_in(value: object) -> object:
            if isinstance(value, _Unknown):
                text = value.form.format(
                    partition=partition_of(region), region=region, digest=value.digest
                )
                self._tokens[text] = value.token
                return text
            if items := mapping(value):
                return {key: stand_in(each) for key, each in items.items()}
            return [stand_in(each) for each in sequence(value)] or value

        return {key: stand_in(value) for key, value in keys.items()}

    def with_tokens(self, pool: config.Pool) -> config.Pool:
        """Return ``pool`` with the tokens of its purchase in place of the stand-ins."""
        keys = ("reservation", "resource_group", "plan")
        stated = {key: getattr(pool.purchase, key, None) for key in keys}
        tokens = {key: self._tokens[each] for key, each in stated.items() if each in self._tokens}
        purchase = pool.purchase.model_copy(update=tokens)
        return pool.model_copy(update={"purchase": purchase})

    @contextmanager
    def planning(self) -> Generator[None]:
        """Turn errors of planning into errors of the arguments, within a ``with`` block.

        Raises:
            ArgumentError: No source states a value that is needed.
        """
        try:
            yield
        except CatalogError as error:
            raise ArgumentError([f"{self._construct.node.path}: {error}"]) from error

    def pool_plan(self, reading: config.StatedReading) -> PoolPlan:
        """Return the plan of the only pool that the arguments state.

        Raises:
            ArgumentError: No source states a value that it needs.
        """
        (pool,), (kubernetes,) = reading.every(config.Pool), reading.every(config.Kubernetes)
        with self.planning():
            return plan_pool(self.with_tokens(pool), kubernetes_version=kubernetes.version)

    def claim(self, kind: str, *, of: str, argument: str, todo: str) -> None:
        """Refuse a second construct in an app for a thing that a cluster has only once.

        Args:
            kind: The claimed thing, in the words of the error.
            of: Name of the cluster, which clusters in other accounts or Regions may share.
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
    """Return an identity of a name: the address of its construct if the name is a reference.

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
    # The text around references distinguishes the names of the roles of an account.
    parts += filter(None, _ENCODED.split(name))
    return " ".join(parts)


def digest(scope: Construct, name: str) -> str:
    """Return a short hash of `identity`, for ids of constructs that exist once per cluster."""
    return sha256(identity(scope, name).encode()).hexdigest()[:_DIGITS]


@contextmanager
def defining() -> Generator[None]:
    """Define our constructs in a user's app without accepting findings there."""
    with nothing_accepted():
        yield


class _Unknown(Frozen):
    """A value that only CloudFormation knows."""

    token: str  # The CDK's text of the token
    form: str  # The required form, see `Arguments.known`
    digest: str  # Digits that distinguish it


def _with_named_zones(keys: Mapping[str, object], zones: Mapping[str, str]) -> Mapping[str, object]:
    changed = dict(keys)
    if (zone := keys.get("zone")) is not None:
        changed["zone"] = zones[str(zone)]
    if "zones" in keys:
        changed["zones"] = list(dict.fromkeys(zones[str(each)] for each in sequence(keys["zones"])))
    return changed
