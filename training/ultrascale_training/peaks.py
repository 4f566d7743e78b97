"""Peak arithmetic of devices, for the share of it that a run uses (MFU)."""

import torch

# FLOP a second of dense matrix products in bfloat16, of what torch calls one device. The longer
# name comes first where one contains the other.
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
# A NeuronCore of Trainium: 190 TFLOPS of a device with two.
# Source: https://awsdocs-neuron.readthedocs-hosted.com/en/latest/about-neuron/arch/neuron-hardware/trainium.html
_TRAINIUM_CORE = 95e12


def peak_flops(device: torch.device) -> float | None:
    """Return the FLOP a second of one ``device`` in bfloat16, None where no source is known."""
    if device.type == "xla":
        return _TRAINIUM_CORE
    if device.type == "cuda":
        return peak_of(torch.cuda.get_device_name(device))
    return None


def peak_of(name: str) -> float | None:
    """Return the FLOP a second of the GPU that the driver calls ``name``."""
    return next((peak for part, peak in _PEAKS if part in name), None)
