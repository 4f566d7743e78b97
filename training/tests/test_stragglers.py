"""The rule by which a node is slower than the others."""

# Checked where torch is installed and where it is not.
# pyright: reportMissingImports=false

import random

import pytest

from tests.support.no_torch import NO_TORCH

pytest.importorskip("torch", reason=NO_TORCH)

from ultrascale_training.stragglers import Stragglers
from ultrascale_training.vote import NodeTime

pytestmark = pytest.mark.training


def report(*seconds: float) -> list[NodeTime]:
    return [NodeTime(node, 8 * node, each) for node, each in enumerate(seconds)]


def named(reports: list[list[NodeTime]]) -> list[list[int]]:
    """Return the nodes that each report names."""
    stragglers = Stragglers()
    return [[each.node for each in stragglers.judge(times)] for times in reports]


@pytest.mark.parametrize(
    ("seconds", "slow"),
    [
        ((1.0, 1.0, 1.15, 1.0), [2]),
        ((1.0, 1.0, 1.05, 1.0), []),
        ((1.0, 2.0), [1]),
        ((1.0, 1.1, 0.9, 1.2, 0.8, 1.3), []),
        ((1.0, 1.1, 0.9, 1.2, 0.8, 3.0), [5]),
        ((1.0,), []),
    ],
)
def test_node_is_slow_beyond_a_tenth_and_beyond_the_noise(
    seconds: tuple[float, ...], slow: list[int]
) -> None:
    assert named([report(*seconds)] * 3)[-1] == slow


def test_one_pause_is_no_fault_and_a_slow_node_is_named_once() -> None:
    fine, slow = report(1, 1, 1, 1), report(1, 1, 1, 2)

    assert named([slow, slow, fine, slow, slow]) == [[]] * 5
    assert named([slow] * 6) == [[], [], [3], [], [], []]


def test_noise_of_two_thousand_nodes_names_none_and_a_slow_one_is_found() -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    noise = random.Random(seed)
    reports = [report(*(noise.gauss(1.0, 0.03) for _ in range(2000))) for _ in range(10)]
    assert not any(named(reports)), f"seed {seed}"

    reports = [[*each[:1000], NodeTime(1000, 8000, 1.4), *each[1001:]] for each in reports]

    assert [nodes for nodes in named(reports) if nodes] == [[1000]], f"seed {seed}"
