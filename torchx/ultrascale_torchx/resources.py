"""Named resources: whole nodes of the training families.

TorchX's own named resources request more CPU than any kubelet leaves, and a resource that the
Neuron device plugin no longer has: such pods would wait forever.
"""

from collections.abc import Callable
from functools import partial

from torchx.specs import Resource

from ultrascale import catalog
from ultrascale.catalog import eks
from ultrascale.catalog.torchx import attributes
from ultrascale.plan import names
from ultrascale.plan.jobs import nodes

_MB = 1_000_000
_MIB = 2**20


def whole_node(instance_type: str) -> Resource:
    """Return the resources by which a pod gets a node of ``instance_type`` for itself.

    Raises:
        CatalogError: There is no such type, or no source states the resources of its nodes.
    """
    share = nodes.whole_node(catalog.lookup(instance_type))
    devices: dict[str, int] = {}
    if share.accelerator == names.NEURON_DEVICE:
        devices[names.NEURON_DEVICE] = share.accelerators
    if share.efa_interfaces:
        devices[names.EFA_INTERFACE] = share.efa_interfaces
    return Resource(
        cpu=share.millicpu // 1000,
        gpu=share.accelerators if share.accelerator == names.NVIDIA_GPU else 0,
        memMB=share.memory_mib * _MIB // _MB,
        capabilities={eks.INSTANCE_TYPE_LABEL: instance_type},
        devices=devices,
    )


def __getattr__(name: str) -> Callable[[], Resource]:
    """Return the named resource of an instance type, called ``p5_48xlarge`` for ``p5.48xlarge``."""
    instance_type = attributes().get(name)
    if instance_type is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return partial(whole_node, instance_type)
