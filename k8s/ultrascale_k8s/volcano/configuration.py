"""Configuration of Volcano's scheduler and controllers, in their ConfigMaps.

The controllers watch theirs and take up a change without a restart; another configuration of the
scheduler makes new pods of it.
"""

from collections.abc import Sequence

from ultrascale import yaml_writer
from ultrascale.documents import Json
from ultrascale.parts.volcano.model import Plan
from ultrascale.plan.names import HOSTNAME_LABEL, network_layer_label

SCHEDULER_CONFIGURATION_KEY = "volcano-scheduler.conf"
# The controllers look their ConfigMap up by these names.
# Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/controllers/hypernode/config/loader.go
CONTROLLER_CONFIG_MAP = "volcano-controller-configmap"
CONTROLLER_CONFIGURATION_KEY = "volcano-controller.conf"

# `preempt` and `reclaim` are not among upstream's default actions; without them neither a job's
# priority nor a queue's `reclaimable` does anything once other jobs run.
_ACTIONS = ("reclaim", "allocate", "backfill", "preempt")
_BINPACK_WEIGHT = 10
_ACCELERATOR_WEIGHT = 10
_TOPOLOGY_WEIGHT = 10
_TOPOLOGY_ACCELERATOR_WEIGHT = 2

_Plugin = dict[str, Json]


def scheduler_configuration(plan: Plan) -> str:
    """Return ``volcano-scheduler.conf``, in YAML.

    Queues share by weight, so they are served by the `proportion` plugin, which keeps to a queue's
    `capability` as well; `capacity` excludes it and goes by absolute shares, which no queue has.

    Source: https://volcano.sh/en/docs/schduler_introduction/
    """
    actions = ("enqueue", *_ACTIONS) if plan.enqueue else _ACTIONS
    configuration = {
        "actions": ", ".join(actions),
        "tiers": [{"plugins": _first_tier()}, {"plugins": _second_tier(plan)}],
    }
    return _to_yaml(configuration)


def controller_configuration(plan: Plan) -> str:
    """Return ``volcano-controller.conf``, in YAML.

    Labels go from the broadest to the narrowest. The last one names the node itself, and the one
    above it becomes tier 1. The name of a topology type has at most 20 characters. There is no
    interval: the source `label` looks again when a node's labels change, and then alone.

    Source: https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/controllers/hypernode/discovery/label/label.go
    """
    if not plan.topology_aware:
        return _to_yaml({"networkTopologyDiscovery": []})
    layers = range(1, plan.topology_layers + 1)
    labels = [*map(network_layer_label, layers), HOSTNAME_LABEL]
    types = {f"aws{plan.topology_layers}": [{"nodeLabel": label} for label in labels]}
    source = {
        "source": "label",
        "enabled": True,
        "config": {"networkTopologyTypes": types},
    }
    return _to_yaml({"networkTopologyDiscovery": [source]})


def _first_tier() -> list[_Plugin]:
    return [{"name": "priority"}, _not_preempting("gang"), {"name": "conformance"}]


def _second_tier(plan: Plan) -> list[_Plugin]:
    plugins: list[_Plugin] = []
    if plan.enqueue:
        # Judges whether a gang may leave the queue, which only `enqueue` asks.
        plugins.append({"name": "overcommit"})
    plugins.append(_not_preempting("drf"))
    plugins.extend({"name": name} for name in ("predicates", "proportion"))
    plugins.append(_nodeorder(plan.scoring.left_out))
    plugins.append(_binpack(plan.accelerator_resources))
    if plan.topology_aware:
        plugins.append(_network_topology_aware(plan.accelerator_resources))
    return plugins


def _not_preempting(name: str) -> _Plugin:
    # As upstream has it: a victim is chosen by priority, not protected by its gang or its share.
    return {"name": name, "enablePreemptable": False}


def _nodeorder(left_out: Sequence[str]) -> _Plugin:
    arguments: dict[str, Json] = {f"{score}.weight": 0 for score in left_out}
    return {"name": "nodeorder", "arguments": arguments}


def _binpack(resources: Sequence[str]) -> _Plugin:
    arguments: dict[str, Json] = {"binpack.weight": _BINPACK_WEIGHT}
    if resources:
        arguments |= _weights("binpack.resources", resources, _ACCELERATOR_WEIGHT)
    return {"name": "binpack", "arguments": arguments}


def _network_topology_aware(resources: Sequence[str]) -> _Plugin:
    arguments: dict[str, Json] = {"weight": _TOPOLOGY_WEIGHT}
    if resources:
        prefix = "hypernode.binpack.resources"
        arguments |= _weights(prefix, resources, _TOPOLOGY_ACCELERATOR_WEIGHT)
    return {"name": "network-topology-aware", "arguments": arguments}


def _weights(prefix: str, resources: Sequence[str], weight: int) -> dict[str, Json]:
    names = sorted(resources)
    return {prefix: ", ".join(names), **{f"{prefix}.{name}": weight for name in names}}


def _to_yaml(value: object) -> str:
    return yaml_writer.dump(value)
