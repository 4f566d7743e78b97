"""Parts that a program states are judged by the rules of the file, in the program's own words."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tests.support.cases import for_each
from ultrascale import config
from ultrascale.plan.mistakes import all_mistakes

BLOCK = {
    "option": "capacity-block",
    "reservation": "cr-0123456789abcdef0",
    "starts": datetime(2026, 12, 1, 11, 30, tzinfo=UTC),
    "ends": "2026-12-02T11:30:00Z",
}
REGION = config.Stated(
    kind=config.Identity,
    at=("env",),
    keys={"name": "own", "region": "us-west-2"},
    names={("region",): "env.region"},
)


def pool(keys: Mapping[str, Any], *, number: int = 0) -> config.Stated:
    """Return a pool that arguments state, with some keys of the test's."""
    own = {
        "name": "p5",
        "provisioner": "managed-node-group",
        "instance_types": ["p5.48xlarge"],
        "nodes": {"max": 4},
        "zones": ["us-west-2a"],
    }
    return config.Stated(
        kind=config.Pool,
        at=("groups", number),
        keys={**own, **keys},
        names={
            ("instance_types", 0): "instance_type",
            ("nodes", "max"): "max_nodes",
            ("purchase",): "block",
            ("zones",): "subnets",
        },
        prefix=f"groups[{number}].",
    )


def read(*stated: config.Stated, **others: Any) -> config.StatedReading:
    network = config.Network(zones=("us-west-2a", "us-west-2b"))
    return config.read_stated((REGION, *stated), around=(network,), **others)


def lines(*stated: config.Stated, **others: Any) -> list[str]:
    reading = read(*stated, **others)
    return [*reading.lines(all_mistakes(reading))]


def test_parts_are_typed() -> None:
    (found,) = read(pool({"purchase": BLOCK, "labels": None})).every(config.Pool)

    assert found.nodes == config.Nodes(max=4)
    assert isinstance(found.purchase, config.CapacityBlock)
    assert found.purchase.starts == BLOCK["starts"]
    assert not found.labels


def test_every_mistake_comes_at_once_in_order_by_the_name_of_its_argument() -> None:
    wrong = {
        "purchase": {**BLOCK, "reservation": "cr"},
        "nodes": {"max": 0},
        "instance_types": ["p5.48xlrge"],
        "efa": "al",
        "labels": {"nvidia.com/gpu": "x"},
    }

    assert [line.partition(": ")[0] for line in lines(pool(wrong))] == [
        "groups[0].instance_type",
        "groups[0].max_nodes",
        "groups[0].block.reservation",
        "groups[0].efa",
        "groups[0].labels.nvidia.com/gpu",
    ]


REFUSED: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "EFA over two zones": (
        {"zones": ["us-west-2a", "us-west-2b"]},
        "groups[0].subnets: nodes of a pool in several zones get no EFA, got "
        "[us-west-2a, us-west-2b]; keep one zone, or write efa: none",
    ),
    "more nodes than a group has": (
        {"nodes": {"max": 900}, "instance_types": ["m7g.large"]},
        "groups[0].max_nodes: more nodes than the 450 that EKS lets a managed node group have, "
        "got 900; make 2 shards or pools of 450 nodes each, or use karpenter",
    ),
    "a block of a type without blocks": (
        {"purchase": BLOCK, "instance_types": ["m7g.large"]},
        "groups[0].instance_type: a type that no Capacity Block is sold for, got 'm7g.large'; use "
        "odcr or on-demand",
    ),
    "a time without its zone": (
        {"purchase": {**BLOCK, "starts": datetime(2026, 12, 1, 11, 30)}},
        "groups[0].block.starts: a time without its zone, got '2026-12-01T11:30:00'; add Z for "
        "UTC, as 2026-12-01T11:30:00Z",
    ),
}


@for_each(REFUSED)
def test_rules_of_the_file_and_of_the_plan_judge_arguments(
    keys: Mapping[str, Any], line: str
) -> None:
    assert lines(pool(keys)) == [line]


def test_other_parts_are_called_as_the_program_calls_them() -> None:
    assert lines(pool({}), pool({}, number=1)) == [
        "groups[1].name: groups[0] has this name already, got 'p5'; choose another"
    ]


def test_a_part_with_a_mistake_keeps_no_other_from_being_judged() -> None:
    stated = (pool({"efa": 5}), pool({"name": "p6", "nodes": {"max": 0}}, number=1))

    assert [line.partition(": ")[0] for line in lines(*stated)] == [
        "groups[0].efa",
        "groups[1].max_nodes",
    ]


def test_what_is_around_the_parts_is_taken_and_not_judged() -> None:
    """The VPC of somebody else has a range, and further zones."""
    reading = read(pool({"zones": ["us-west-2c"]}))

    assert [*reading.lines(all_mistakes(reading))] == [
        "groups[0].subnets[0]: not one of network.zones, got 'us-west-2c'; use one of us-west-2a, "
        "us-west-2b, or add it there"
    ]
    assert config.Network not in {type(each.item) for each in reading.parts.placed}


def test_a_value_that_is_not_known_yet_is_called_so() -> None:
    purchase = {"option": "odcr", "reservation": "cr-00000000012345678"}
    wrong = {"purchase": purchase | {"spill": "cr-00000000012345678"}}

    (line,) = lines(pool(wrong), unknown={"cr-00000000012345678"})

    assert line.startswith("groups[0].block.spill: unknown value, got 'a token'; ")


@for_each(
    {
        "text": ("x", "'x'"),
        "a number": (1.5, "1.5"),
        "a flag": (True, "true"),
        "nothing": (None, "null"),
        "a list": (["a", 1, False], "[a, 1, false]"),
        "a mapping": ({"min": 0, "in": {"x": "y\n"}}, "{min: 0, in: {x: 'y\\n'}}"),
        "a time": (BLOCK["starts"], "'2026-12-01T11:30:00Z'"),
    }
)
def test_a_value_is_spelled_as_a_file_would_spell_it(value: object, text: str) -> None:
    assert config.spelled(value) == text
