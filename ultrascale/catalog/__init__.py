"""Facts that AWS and Kubernetes document, each with its source; no other package holds any."""

from ultrascale.catalog._sources import Source
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
