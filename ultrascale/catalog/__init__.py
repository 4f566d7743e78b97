"""What AWS documents: facts, each with its source. The only place in the project that holds any."""

from ultrascale.catalog._instances import INSTANCE_TYPES, lookup
from ultrascale.catalog._model import (
    Accelerator,
    AcceleratorKind,
    AmiType,
    Architecture,
    Hypervisor,
    InstanceSpec,
    NvmeDisks,
    ResourceName,
    UltraServer,
)
from ultrascale.catalog._sources import Source

__all__ = [
    "INSTANCE_TYPES",
    "Accelerator",
    "AcceleratorKind",
    "AmiType",
    "Architecture",
    "Hypervisor",
    "InstanceSpec",
    "NvmeDisks",
    "ResourceName",
    "Source",
    "UltraServer",
    "lookup",
]
