"""Configuration of Volcano's scheduler and controllers for each kind of cluster."""

from typing import Any

import pytest
import yaml

from tests.support.folders import DATA
from tests.support.volcano_charts import PROGRAMS, container, keyed, make_plan, render_volcano
from ultrascale.parts.volcano.model import NodeScoringPlan
from ultrascale.parts.volcano.model import Plan as VolcanoPlan
from ultrascale.parts.volcano.scale import SCALES
from ultrascale.plan.scale import ROWS
from ultrascale_k8s.volcano.chart import controller_configuration, scheduler_configuration


def plugins(plan: VolcanoPlan) -> dict[str, dict[str, Any]]:
    tiers = yaml.safe_load(scheduler_configuration(plan))["tiers"]
    return {plugin["name"]: plugin for tier in tiers for plugin in tier["plugins"]}


@pytest.mark.parametrize("enqueue", [False, True], ids=["scales from zero", "static capacity"])
def test_actions_follow_from_whether_the_cluster_scales(enqueue: bool) -> None:
    configuration = yaml.safe_load(scheduler_configuration(make_plan(enqueue=enqueue)))

    first = "enqueue, " if enqueue else ""
    assert configuration["actions"] == f"{first}reclaim, allocate, backfill, preempt"
    # Capacity that exists is weighed only where jobs queue for it.
    assert ("overcommit" in plugins(make_plan(enqueue=enqueue))) is enqueue


def test_scheduler_has_what_gangs_need_and_packs_accelerators() -> None:
    found = plugins(make_plan())
    arguments = found["binpack"]["arguments"]

    assert found.keys() >= {"priority", "gang", "conformance", "drf", "predicates"}
    # Queues share by weight.
    assert "proportion" in found
    assert "capacity" not in found
    # A gang does not protect its pods from a higher priority.
    assert found["gang"]["enablePreemptable"] is found["drf"]["enablePreemptable"] is False
    # Whole nodes are kept free.
    assert arguments["binpack.resources"] == "aws.amazon.com/neuron, nvidia.com/gpu"
    assert arguments["binpack.resources.nvidia.com/gpu"] == 10
    assert arguments["binpack.resources.aws.amazon.com/neuron"] == 10
    binpack = plugins(make_plan(accelerator_resources=()))["binpack"]
    assert binpack["arguments"] == {"binpack.weight": 10}


@pytest.mark.parametrize("enqueue", [False, True])
def test_a_queue_within_its_share_loses_no_pods_to_others(enqueue: bool) -> None:
    """`reclaim` asks no tier after the first with victims, and `enqueue` none after a consent."""
    first, _ = yaml.safe_load(scheduler_configuration(make_plan(enqueue=enqueue)))["tiers"]
    asked_first = {plugin["name"] for plugin in first["plugins"]}
    assert asked_first >= {"gang", "conformance", "proportion"}
    assert ("overcommit" in asked_first) is enqueue


@pytest.mark.parametrize("aware", [False, True])
def test_network_distance_counts_only_where_it_is_known(aware: bool) -> None:
    plan = make_plan(topology_aware=aware)
    (*sources,) = yaml.safe_load(controller_configuration(plan))["networkTopologyDiscovery"]

    assert ("network-topology-aware" in plugins(plan)) is aware
    # A cluster that is not aware looks for no HyperNodes.
    assert bool(sources) is aware


def test_configuration_does_not_depend_on_the_order_of_pools() -> None:
    forward = make_plan(accelerator_resources=("nvidia.com/gpu", "aws.amazon.com/neuron"))
    backward = make_plan(accelerator_resources=("aws.amazon.com/neuron", "nvidia.com/gpu"))

    assert scheduler_configuration(forward) == scheduler_configuration(backward)


@pytest.mark.parametrize("layers", [3, 4])
def test_hyper_nodes_are_found_from_the_broadest_layer_to_the_node(layers: int) -> None:
    configuration = yaml.safe_load(controller_configuration(make_plan(topology_layers=layers)))

    (source,) = configuration["networkTopologyDiscovery"]
    # The search is told nothing that it does not read.
    assert source.keys() == {*SETTINGS["discovery"]}
    assert (source["source"], source["enabled"]) == ("label", True)
    ((name, labels),) = source["config"]["networkTopologyTypes"].items()
    assert len(name) <= 20
    assert [label["nodeLabel"] for label in labels] == [
        *(f"topology.k8s.aws/network-node-layer-{layer}" for layer in range(1, layers + 1)),
        "kubernetes.io/hostname",
    ]


SETTINGS: dict[str, Any] = yaml.safe_load((DATA / "volcano_settings.yaml").read_text())
SIZES = {
    f"{row.nodes} nodes, {'aware' if aware else 'unaware'}": {
        "scale": SCALES[row.nodes],
        "topology_aware": aware,
        "enqueue": aware,
        "scoring": NodeScoringPlan(
            percent=1 if aware else SCALES[row.nodes].nodes_scored_percent,
            least=SCALES[row.nodes].topology_candidates if aware else None,
            left_out=("podtopologyspread", "podaffinity", "tainttoleration", "imagelocality"),
        ),
    }
    for row in ROWS
    for aware in (False, True)
}


@pytest.mark.parametrize("size", SIZES)
def test_every_flag_is_one_that_the_program_has(size: str) -> None:
    """A program with a flag that it does not know never starts."""
    by_name = keyed(render_volcano(**SIZES[size]))

    for program in PROGRAMS:
        known = {*SETTINGS["flags"][program], *SETTINGS["flags"]["all"]}
        args = container(by_name, program)["args"]
        flags = [each.lstrip("-").partition("=")[0] for each in args]
        assert {*flags} <= known
        assert len(flags) == len({*flags})


@pytest.mark.parametrize("size", SIZES)
def test_every_argument_is_one_that_its_plugin_reads(size: str) -> None:
    """One that nothing reads changes nothing, and nobody is told."""
    found = plugins(make_plan(**SIZES[size]))
    for name, plugin in found.items():
        assert plugin.keys() <= {*SETTINGS["options"]}
        known = SETTINGS["arguments"][name]
        prefixes = tuple(key for key in known if key.endswith("."))
        for key in plugin.get("arguments", {}):
            assert key in known or key.startswith(prefixes), f"{name}: {key}"
    # The spread of pods looks at every node: half of the time of every gang, for the same nodes.
    assert found["nodeorder"]["arguments"]["podtopologyspread.weight"] == 0


def test_the_share_of_scored_nodes_is_stated_where_their_least_number_is() -> None:
    """Without it Volcano scores half of a group of 500, whatever the least number is."""
    args = container(keyed(render_volcano(**SIZES["20000 nodes, aware"])), PROGRAMS[0])["args"]

    assert "--percentage-nodes-to-find=1" in args
    assert "--minimum-feasible-nodes=10" in args
