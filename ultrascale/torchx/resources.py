"""Named resources: whole nodes of the training families, as EKS has them to give.

What TorchX itself registers for them asks for more CPU than any kubelet leaves, and for a resource
that the Neuron device plugin no longer has: such pods wait for ever.
"""

from functools import partial

from torchx.specs import Resource

from ultrascale import catalog
from ultrascale.catalog import eks
from ultrascale.plan import names
from ultrascale.plan.jobs import nodes

_MB = 1_000_000
_MIB = 2**20


def whole_node(instance_type: str) -> Resource:
    """Return what a pod may ask for of a node of ``instance_type`` that it has for itself.

    Raises:
        CatalogError: There is no such type, or no source states what its nodes have.
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


p4d_24xlarge = partial(whole_node, "p4d.24xlarge")
p4de_24xlarge = partial(whole_node, "p4de.24xlarge")
p5_4xlarge = partial(whole_node, "p5.4xlarge")
p5_48xlarge = partial(whole_node, "p5.48xlarge")
p5e_48xlarge = partial(whole_node, "p5e.48xlarge")
p5en_48xlarge = partial(whole_node, "p5en.48xlarge")
p6_b200_48xlarge = partial(whole_node, "p6-b200.48xlarge")
p6_b300_48xlarge = partial(whole_node, "p6-b300.48xlarge")
p6e_gb200_36xlarge = partial(whole_node, "p6e-gb200.36xlarge")
trn1_2xlarge = partial(whole_node, "trn1.2xlarge")
trn1_32xlarge = partial(whole_node, "trn1.32xlarge")
trn1n_32xlarge = partial(whole_node, "trn1n.32xlarge")
trn2_3xlarge = partial(whole_node, "trn2.3xlarge")
trn2_48xlarge = partial(whole_node, "trn2.48xlarge")
trn2u_48xlarge = partial(whole_node, "trn2u.48xlarge")
