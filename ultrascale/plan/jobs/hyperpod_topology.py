"""Closeness of a job's nodes on HyperPod, where task governance places by AWS's network.

Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-operate-console-ui-governance-tasks-scheduling.html
"""

from collections.abc import Iterator, Sequence

from ultrascale import config
from ultrascale.catalog import network_layers, training_operator
from ultrascale.plan import names
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.model import PoolPlan
from ultrascale.plan.model.jobs import TopologyPlan

Mistakes = Iterator[config.Mistake]

_LAYERS = range(1, training_operator.NETWORK_LAYERS + 1)
# Nodes of a group of the lowest layer, and of the next.
_GROUPS = (network_layers.SMALLEST_GROUP_NODES, network_layers.NEXT_GROUP_NODES)


def mistakes_of(
    request: JobRequest, job: config.TrainingJob, pools: Sequence[PoolPlan]
) -> Mistakes:
    """Yield a closeness that task governance does not give the job on ``pools``."""
    if request.team is None:
        wrong = "closeness of a job of no team, and on HyperPod task governance alone gives it"
        yield config.refuse("topology", wrong, "name its team, or leave it out")
        return
    types = {name for pool in pools for name in pool.instance_types}
    if unknown := sorted(types - training_operator.PLACED_TYPES):
        wrong = f"closeness on {', '.join(unknown)}, which task governance does not place so"
        yield config.refuse("topology", wrong, "leave it out, or choose other nodes")
    if any(names.network_layer_label(layer) in job.node_selector for layer in _LAYERS):
        wrong = "beside a node_selector of the network, and task governance takes one of them"
        yield config.refuse("topology", wrong, "keep one")
    if job.min_nodes is not None:
        wrong = "beside min_nodes, and pods that come later are not placed with the others"
        yield config.refuse("topology", wrong, "keep one")
    said = job.topology
    if isinstance(said, config.TopologyLayer):
        for mode in ("required", "preferred"):
            layer = getattr(said, mode)
            if layer is not None and _number(layer) not in _LAYERS:
                wrong = f"a layer that task governance does not know: it has {len(_LAYERS)}"
                yield config.refuse(f"topology.{mode}", wrong, f"use layer-{len(_LAYERS)}")


def topology_of(job: config.TrainingJob) -> TopologyPlan | None:
    """Return how close task governance is asked to place the pods of a job."""
    match job.topology:
        case config.TopologyLayer(required=str(layer)):
            return TopologyPlan(mode="hard", level=_label(_number(layer)))
        case config.TopologyLayer(preferred=str(layer)):
            return TopologyPlan(mode="soft", level=_label(_number(layer)))
        case "required":
            return TopologyPlan(mode="hard", level=_label(_smallest_that_holds(job.nodes)))
        case "preferred":
            # Where no group of the lowest layer holds them all, it goes up by itself.
            return TopologyPlan(mode="soft", level=_label(_LAYERS[-1]))
        case _:
            return None


def _smallest_that_holds(nodes: int) -> int:
    for layer, size in zip(reversed(_LAYERS), _GROUPS, strict=False):
        if nodes <= size:
            return layer
    return _LAYERS[0]


def _number(layer: str) -> int:
    return int(layer.rpartition("-")[2])


def _label(layer: int) -> str:
    return names.network_layer_label(layer)
