"""Peak arithmetic of devices, from which a run's utilization (MFU) follows."""

import os
from contextlib import suppress
from pathlib import Path

import torch

# FLOP a second of dense matrix products in bfloat16, by a part of torch's name of the device. If a
# name contains another, the longer name comes first.
_PEAKS = (
    # https://www.nvidia.com/en-us/data-center/h200/ (half of the figure with sparsity)
    ("H200", 989e12),
    # https://www.nvidia.com/en-us/data-center/h100/
    ("H100 NVL", 835e12),
    ("H100 PCIe", 756e12),
    ("H100", 989e12),
    # https://www.nvidia.com/en-us/data-center/gb200-nvl72/ and /gb300-nvl72/, a GPU of 72
    ("GB200", 2.5e15),
    ("GB300", 2.5e15),
    # https://resources.nvidia.com/en-us-dgx-systems/dgx-b200-datasheet, a GPU of 8
    ("B200", 2.25e15),
    ("B300", 2.25e15),
    # https://www.nvidia.com/en-us/data-center/a100/
    ("A100", 312e12),
    # https://www.nvidia.com/en-us/data-center/l40s/
    ("L40S", 362e12),
    # https://www.nvidia.com/en-us/data-center/l4/
    ("L4", 121e12),
)
# FLOP a second and NeuronCores of a chip, by the family of the instance.
_NEURON = {
    # https://awsdocs-neuron.readthedocs-hosted.com/en/latest/about-neuron/arch/neuron-hardware/trainium.html
    "trn1": (190e12, 2),
    "trn1n": (190e12, 2),
    # https://awsdocs-neuron.readthedocs-hosted.com/en/latest/about-neuron/arch/neuron-hardware/trainium2.html
    "trn2": (667e12, 8),
    "trn2u": (667e12, 8),
    # https://awsdocs-neuron.readthedocs-hosted.com/en/latest/about-neuron/arch/neuron-hardware/trainium3.html
    "trn3": (671e12, 8),
}
# Variable with the cores of a device. Without it a device has one core on trn1, which knows no
# other setting, and two cores on later families. Source:
# https://awsdocs-neuron.readthedocs-hosted.com/en/latest/about-neuron/arch/neuron-features/logical-neuroncore-config.html
_CORES_OF_A_DEVICE = "NEURON_LOGICAL_NC_CONFIG"
# File with the type of a Nitro instance. It is undocumented; with other content no peak is known.
_PRODUCT = Path("/sys/devices/virtual/dmi/id/product_name")


def peak_flops(device: torch.device) -> float | None:
    """Return the FLOP a second of a ``device`` in bfloat16; None for an unknown device."""
    if device.type == "cuda":
        return peak_of(torch.cuda.get_device_name(device))
    if device.type in ("xla", "neuron"):
        with suppress(OSError):
            return neuron_peak_of(_PRODUCT.read_text().strip())
    return None


def peak_of(name: str) -> float | None:
    """Return the FLOP a second of the GPU that the driver calls ``name``."""
    return next((peak for part, peak in _PEAKS if part in name), None)


def neuron_peak_of(instance_type: str) -> float | None:
    """Return the FLOP a second of a Neuron device of an instance type; None for other types."""
    family = instance_type.partition(".")[0]
    if family not in _NEURON:
        return None
    peak, cores = _NEURON[family]
    default = 1 if cores == 2 else 2
    return peak / cores * int(os.environ.get(_CORES_OF_A_DEVICE) or default)
