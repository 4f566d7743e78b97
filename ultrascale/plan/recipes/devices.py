"""Accelerators as the processes of torchrun have them."""

from ultrascale import catalog
from ultrascale.catalog import recipes
from ultrascale.frozen import Frozen

_MIB = 2**20


class Device(Frozen):
    """An accelerator as a process of torchrun has it: a GPU, or a logical NeuronCore."""

    name: str  # Name of the accelerator
    count: int  # Devices of a node
    memory_bytes: int  # Memory of one
    teraflops: float | None  # Peak of one in BF16; None where no source states it

    @property
    def is_neuron(self) -> bool:
        """Whether it is a NeuronCore."""
        return self.name.startswith("AWS ")


def device_of_type(spec: catalog.InstanceType) -> Device | None:
    """Return a device of a whole node of a type; None where no source states what it has."""
    accelerator, facts = spec.accelerator, ("name", "count", "memory_mib_total")
    if accelerator is None or not all(accelerator.knows(fact) for fact in facts):
        return None
    return device_of(accelerator, _devices_of(accelerator))


def device_of(accelerator: catalog.Accelerator, processes: int) -> Device:
    """Return one of the ``processes`` devices of a node with an accelerator."""
    total, peak = _devices_of(accelerator), recipes.PEAK_TERAFLOPS.get(accelerator.name)
    return Device(
        name=accelerator.name,
        count=processes,
        memory_bytes=accelerator.memory_mib_total * _MIB // total,
        teraflops=None if peak is None else peak * accelerator.count / total,
    )


def _devices_of(accelerator: catalog.Accelerator) -> int:
    neuron = accelerator.kind == "neuron"
    return accelerator.neuron_cores_logical if neuron else accelerator.count
