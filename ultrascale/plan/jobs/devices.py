"""Accelerators as the processes of torchrun have them."""

from collections.abc import Sequence

from ultrascale import catalog
from ultrascale.frozen import Frozen
from ultrascale.plan.jobs.nodes import NodeShare
from ultrascale.plan.model import PoolPlan

_MIB = 2**20


class Device(Frozen):
    """An accelerator as a process of torchrun has it: a GPU, or a logical NeuronCore."""

    name: str  # Name of the accelerator
    count: int  # Devices of a node
    memory_bytes: int  # Memory of one
    share: float  # Part of an accelerator that one is

    @property
    def is_neuron(self) -> bool:
        """Whether it is a NeuronCore."""
        return self.name.startswith("AWS ")


def device_of_type(spec: catalog.InstanceType) -> Device | None:
    """Return a device of a whole node of a type; None where no source states its figures."""
    accelerator, facts = spec.accelerator, ("name", "count", "memory_mib_total")
    if accelerator is None or not all(accelerator.knows(fact) for fact in facts):
        return None
    return device_of(accelerator, _devices_of(accelerator))


def device_of(accelerator: catalog.Accelerator, processes: int) -> Device:
    """Return one of the ``processes`` devices of a node with an accelerator."""
    total = _devices_of(accelerator)
    return Device(
        name=accelerator.name,
        count=processes,
        memory_bytes=accelerator.memory_mib_total * _MIB // total,
        share=accelerator.count / total,
    )


def smallest_device(share: NodeShare, pools: Sequence[PoolPlan]) -> Device | None:
    """Return the smallest device among those of ``pools``; None where nodes have none.

    Raises:
        CatalogError: No source states a value of an instance type.
    """
    if not share.accelerators:
        return None
    accelerators = (spec.accelerator for pool in pools for spec in pool.specs)
    devices = [device_of(item, share.processes) for item in accelerators if item is not None]
    return min(devices, key=lambda device: device.memory_bytes, default=None)


def _devices_of(accelerator: catalog.Accelerator) -> int:
    neuron = accelerator.kind == "neuron"
    return accelerator.neuron_cores_logical if neuron else accelerator.count
