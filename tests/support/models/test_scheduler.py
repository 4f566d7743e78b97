"""The model of the scheduler does what the real one is documented to do."""

from decimal import Decimal
from typing import Any

import pytest

from tests.support.cases import for_each
from tests.support.models.scheduler import Launcher, Node, Pod, Scheduler, admits

ROOM = {"cpu": Decimal(8), "memory": Decimal(8), "pods": Decimal(10)}
SPOT = {"key": "spot", "value": "true", "effect": "NoSchedule"}


def node(name: str = "a", *taints: dict[str, str], **labels: str) -> Node:
    return Node(name, labels, taints, ROOM)


def pod(name: str = "p", *, cpu: int = 1, priority: int = 0, **spec: Any) -> Pod:
    preempts = spec.pop("preempts", True)
    containers = [{"resources": {"requests": {"cpu": str(cpu), "memory": "1"}}}]
    return Pod(name, {"containers": containers, **spec}, priority, preempts)


def required(*rules: dict[str, Any]) -> dict[str, Any]:
    terms = [{"matchExpressions": [rule]} for rule in rules]
    kind = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"nodeAffinity": {kind: {"nodeSelectorTerms": terms}}}


def preferred(**weights: int) -> dict[str, Any]:
    def preference(tier: str) -> dict[str, Any]:
        return {"matchExpressions": [{"key": "tier", "operator": "In", "values": [tier]}]}

    kind = "preferredDuringSchedulingIgnoredDuringExecution"
    terms = [{"weight": weight, "preference": preference(tier)} for tier, weight in weights.items()]
    return {"nodeAffinity": {kind: terms}}


@for_each(
    [
        ("In", ["x", "y"], {"k": "y"}, True),
        ("In", ["x"], {}, False),
        ("NotIn", ["x"], {"k": "x"}, False),
        ("NotIn", ["x"], {}, True),
        ("Exists", [], {"k": ""}, True),
        ("Exists", [], {}, False),
        ("DoesNotExist", [], {"k": "x"}, False),
        ("DoesNotExist", [], {}, True),
        ("Gt", ["3"], {"k": "4"}, True),
        ("Gt", ["3"], {"k": "3"}, False),
        ("Lt", ["3"], {"k": "2"}, True),
        ("Lt", ["3"], {}, False),
    ]
)
def test_a_rule_of_affinity_holds_as_kubernetes_says(
    operator: str, values: list[str], labels: dict[str, str], fits: bool
) -> None:
    affinity = required({"key": "k", "operator": operator, "values": values})
    assert admits(pod(affinity=affinity), node("a", **labels)) is fits


def test_one_of_several_terms_is_enough_and_none_that_says_nothing() -> None:
    rules = [{"key": key, "operator": "Exists"} for key in ("a", "b")]
    assert admits(pod(affinity=required(*rules)), node("n", b="1"))
    kind = "requiredDuringSchedulingIgnoredDuringExecution"
    terms: list[dict[str, Any]] = [{}, {"matchExpressions": []}]
    affinity = {"nodeAffinity": {kind: {"nodeSelectorTerms": terms}}}
    assert not admits(pod(affinity=affinity), node())


def test_what_the_model_does_not_know_is_no_pod_that_runs_anywhere() -> None:
    specs: tuple[dict[str, Any], ...] = (
        {"affinity": {"podAntiAffinity": {}}},
        {"topologySpreadConstraints": []},
        {"schedulingGates": []},
        {"nodeName": "a"},
    )
    for spec in specs:
        with pytest.raises(ValueError, match="the model knows nothing of"):
            admits(pod(**spec), node())


@for_each(
    [
        ({"key": "spot", "operator": "Equal", "value": "true", "effect": "NoSchedule"}, True),
        ({"key": "spot", "value": "true"}, True),
        ({"key": "spot", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "spot", "value": "false"}, False),
        ({"key": "spot", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
    ]
)
def test_a_toleration_is_for_the_taints_that_kubernetes_says(
    toleration: dict[str, str], borne: bool
) -> None:
    assert admits(pod(tolerations=[toleration]), node("a", SPOT)) is borne


def test_a_selector_and_a_cordon_are_strict_and_advice_is_not() -> None:
    cordoned = node()
    cordoned.unschedulable = True
    selective = pod(nodeSelector={"disk": "ssd"})
    assert not admits(selective, node())
    assert not admits(selective, node("a", disk="hdd"))
    assert not admits(pod(), cordoned)
    assert admits(pod(), node("a", {**SPOT, "effect": "PreferNoSchedule"}))


def test_what_is_preferred_comes_before_what_is_empty() -> None:
    liked, empty = node("a", tier="x"), node("b")
    scheduler = Scheduler([liked, empty])
    scheduler.run(pod("first", cpu=2, nodeSelector={"tier": "x"}))
    second = pod("second", affinity=preferred(x=100))

    scheduler.run(second)

    assert second.node is liked


def test_of_nodes_alike_the_emptiest_is_taken() -> None:
    scheduler = Scheduler([node("a"), node("b")])
    first, second = pod("first", cpu=2), pod("second", cpu=2)

    scheduler.run(first, second)

    assert first.node is not second.node


def test_the_most_important_pod_is_placed_first() -> None:
    scheduler = Scheduler([node()])
    low, high = pod("low", cpu=8, priority=1), pod("high", cpu=8, priority=2)

    scheduler.run(low, high)

    assert (low.node, high.node) == (None, scheduler.nodes[0])


def test_no_more_pods_are_displaced_than_must_be() -> None:
    scheduler = Scheduler([node()])
    small = [pod(f"small-{number}", cpu=2, priority=number) for number in range(4)]
    scheduler.run(*small)
    large = pod("large", cpu=4, priority=9)

    scheduler.run(large)

    assert large.node is not None
    assert [each.node is None for each in small] == [True, True, False, False]


@for_each(
    {
        "an equal": pod(cpu=8, priority=5),
        "one that never preempts": pod(cpu=8, priority=9, preempts=False),
        "one that it would not help": pod(cpu=9, priority=9),
    }
)
def test_equals_and_those_that_never_preempt_displace_nobody(second: Pod) -> None:
    scheduler = Scheduler([node()])
    first = pod(cpu=8, priority=5)
    scheduler.run(first)
    scheduler.run(second)
    assert (first.node, second.node) == (scheduler.nodes[0], None)


def test_nodes_are_launched_by_what_is_preferred_then_by_weight_and_up_to_a_limit() -> None:
    heavy = Launcher("heavy", 50, 1, node(tier="x"))
    light = Launcher("light", 10, 1, node(tier="y"))
    scheduler = Scheduler([], (light, heavy))
    liked = pod("liked", cpu=8, affinity=preferred(z=100, y=50, x=10))
    others = [pod(f"other-{number}", cpu=8) for number in range(2)]

    scheduler.run(liked, *others)

    assert [each.node.name if each.node else None for each in (liked, *others)] == [
        "light/0",
        "heavy/0",
        None,
    ]


def test_no_node_is_launched_that_the_pod_does_not_fit() -> None:
    scheduler = Scheduler([], (Launcher("spot", 1, 9, node("s", SPOT)),))

    scheduler.run(pod("stranger"), pod("huge", cpu=99, tolerations=[{"operator": "Exists"}]))

    assert scheduler.nodes == []
