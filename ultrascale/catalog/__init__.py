"""Facts that AWS and Kubernetes document, with their sources; other packages hold none of them."""

from ultrascale.catalog.instance_types import (
    INSTANCE_TYPES,
    Accelerator,
    AcceleratorKind,
    AmiType,
    Architecture,
    Hypervisor,
    InstanceType,
    NvmeDisks,
    ResourceName,
    UltraServer,
    lookup,
    suggest,
)
from ultrascale.catalog.tables import Source

__all__ = [
    "INSTANCE_TYPES",
    "Accelerator",
    "AcceleratorKind",
    "AmiType",
    "Architecture",
    "Hypervisor",
    "InstanceType",
    "NvmeDisks",
    "ResourceName",
    "Source",
    "UltraServer",
    "lookup",
    "suggest",
]
