"""Configuration of Volcano's scheduler and controllers, in ConfigMaps.

The controllers watch their ConfigMap and apply a change without a restart; a changed configuration
of the scheduler makes new pods of the scheduler.
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

# `preempt` and `reclaim` are no default actions of upstream; without them neither a job's priority
# nor a queue's `reclaimable` has an effect while other jobs run.
_ACTIONS = ("reclaim", "allocate", "backfill", "preempt")
_BINPACK_WEIGHT = 10
_ACCELERATOR_WEIGHT = 10
_TOPOLOGY_WEIGHT = 10
_TOPOLOGY_ACCELERATOR_WEIGHT = 2

_Plugin = dict[str, Json]


def scheduler_configuration(plan: Plan) -> str:
    """Return ``volcano-scheduler.conf`` in YAML.

    Queues share by weight, so the `proportion` plugin serves them, which also respects a queue's
    `capability`; the plugin `capacity` excludes it and needs absolute shares, which no queue has.

    Source: https://volcano.sh/en/docs/schduler_introduction/
    """
    actions = ("enqueue", *_ACTIONS) if plan.enqueue else _ACTIONS
    configuration = {
        "actions": ", ".join(actions),
        "tiers": [{"plugins": _first_tier()}, {"plugins": _second_tier(plan)}],
    }
    return _to_yaml(configuration)


def controller_configuration(plan: Plan) -> str:
    """Return ``volcano-controller.conf`` in YAML.

    Labels are sorted from the broadest to the narrowest. The last label names the node itself, and
    the label before it becomes tier 1. The name of a topology type has at most 20 characters. There
    is no interval: the source `label` looks again only when a node's labels change.

    Source:
    https://github.com/volcano-sh/volcano/blob/v1.15.1/pkg/controllers/hypernode/discovery/label/label.go
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
        # Judges whether a gang may leave the queue; only the action `enqueue` asks it.
        plugins.append({"name": "overcommit"})
    plugins.append(_not_preempting("drf"))
    plugins.extend({"name": name} for name in ("predicates", "proportion"))
    plugins.append(_nodeorder(plan.scoring.left_out))
    plugins.append(_binpack(plan.accelerator_resources))
    if plan.topology_aware:
        plugins.append(_network_topology_aware(plan.accelerator_resources))
    return plugins


def _not_preempting(name: str) -> _Plugin:
    # As in upstream: priority chooses a victim; neither its gang nor its share protects it.
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
