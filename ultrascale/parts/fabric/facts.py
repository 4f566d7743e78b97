"""Published bandwidths between two nodes, and the programs that measure them.

A figure is the bus bandwidth of an all-reduce of 1 GiB over all accelerators of two nodes, by
nccl-tests or nccom-test: the lowest bandwidth that AWS published, so that no sound node fails. AWS
publishes no floors. The floors in an AWS sample (p5: 800 GB/s, p4d: 300) are above the bandwidth of
these nodes' network adapters, and are not used.
"""

from collections.abc import Mapping
from types import MappingProxyType

from ultrascale.frozen import Frozen

MEASURED_BYTES = 2**30
"""Message size, in bytes, of every figure and every measurement."""
FLOOR_SHARE = 0.8
"""Share of the published bandwidth below which a pair of nodes fails.
Our own choice: figures differ by versions of NCCL and of the plugin, and TCP stays below a tenth.
"""


SHARE_OF_BEST = 0.6
"""Share of the best pair's bandwidth below which another pair of the same check fails, if its type
has no published figure. Our own choice: half of the adapters and TCP stay below it, and the noise
of other jobs on the network does not.
"""


class Figure(Frozen):
    """A published measurement of two nodes."""

    busbw: float  # Bus bandwidth in GB/s
    source: str  # Page that publishes it


_NCCL_TESTS = (
    "https://github.com/awslabs/awsome-distributed-ai/blob/"
    "0b55ba5f073051f685f4258591b9d3a3326403c5/micro-benchmarks/nccl-tests/README.md"
)
FIGURES: Mapping[str, Figure] = MappingProxyType(
    {
        "p4d.24xlarge": Figure(
            busbw=32.71,
            source="https://github.com/aws-samples/aws-efa-eks/blob/"
            "043dbe748fad5c4a6842cd2135c097fbaafe4a95/README.md",
        ),
        "p4de.24xlarge": Figure(busbw=76.79, source=_NCCL_TESTS),
        # An older log in the same file, with NCCL 2.18.5, has 313: AWS keeps it as an example.
        "p5.48xlarge": Figure(busbw=436.95, source=_NCCL_TESTS),
        "trn1.32xlarge": Figure(
            busbw=47.09,
            source="https://github.com/aws-neuron/aws-neuron-sdk/blob/"
            "0f75c1e039d9c4d97b31f0f41c2239c2ccf480b2/tools/neuron-sys-tools/nccom-test.rst",
        ),
    }
)


def floor(instance_type: str) -> float | None:
    """Return the lowest bus bandwidth, in GB/s, of two sound nodes; None without a figure."""
    figure = FIGURES.get(instance_type)
    return None if figure is None else round(figure.busbw * FLOOR_SHARE, 1)


# It is built for sm_80, 86, 89, 90, 100 and 103, without PTX, and for x86.
# Source: https://github.com/awslabs/awsome-distributed-ai/pull/1070
GPUS = frozenset(
    f"NVIDIA {name}" for name in ("A100", "A10G", "L4", "L40S", "H100", "H200", "B200", "B300")
)
"""GPUs for which AWS's image of nccl-tests holds compiled code."""

# Sources: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start-nccl.html
# https://github.com/NVIDIA/nccl-tests/blob/v2.18.3/README.md
NCCL_COMMAND = (
    "mpirun",
    "--allow-run-as-root",
    "--tag-output",
    "--mca",
    "pml",
    "^cm",
    "--mca",
    "btl",
    "tcp,self",
    "--mca",
    "btl_tcp_if_exclude",
    "lo,docker0,pod-id-link0",
    "--mca",
    "plm_rsh_no_tree_spawn",
    "1",
    "--bind-to",
    "none",
    "-n",
    "{ranks}",
    "-N",
    "{slots}",
    "-H",
    "{lead}:{slots},{peer}:{slots}",
    "-x",
    "PATH",
    "-x",
    "LD_LIBRARY_PATH",
    "-x",
    "NCCL_SOCKET_IFNAME",
    "-x",
    "NCCL_DEBUG=INFO",
    "-x",
    "NCCL_DEBUG_SUBSYS=INIT,NET",
    "/opt/nccl-tests/build/all_reduce_perf",
    "-b",
    "1G",
    "-e",
    "1G",
    "-g",
    "1",
    "-c",
    "1",
    "-n",
    "20",
)
"""Command that measures two nodes with GPUs, with placeholders for their addresses and ranks."""

# Source: https://awsdocs-neuron.readthedocs-hosted.com/en/latest/tools/neuron-sys-tools/nccom-test.html
NCCOM_COMMAND = (
    "env",
    "NEURON_RT_ROOT_COMM_ID={lead}:45654",
    "NCCL_DEBUG=INFO",
    "nccom-test",
    "-r",
    "{ranks}",
    "-N",
    "2",
    "-b",
    "1GB",
    "-e",
    "1GB",
    "-d",
    "fp32",
    # The flag's value is optional: without it, the operation would be taken for it. Random values
    # would be added up again on the CPU.
    "--check",
    "all_ones",
    "allr",
    # The first address is the node of NEURON_RT_ROOT_COMM_ID.
    "--hosts",
    "{lead}",
    "{peer}",
)
"""Command that measures two nodes with Neuron devices, with the same placeholders."""

DEVICE_LINE = "device-verdict "
"""Prefix of the line with the verdict on a node's devices; JSON follows."""

# dcgmi ends with a status other than 0 if a test fails. Level 2 takes about two minutes.
# Source: https://docs.nvidia.com/datacenter/dcgm/latest/reference/command-line-reference/dcgmi/dcgmi-diag.html
DCGM_COMMAND = "nv-hostengine && dcgmi diag --run 2"
# A device that the driver has lost is not listed; the test moves 32 MiB through every core.
# Source: https://awsdocs-neuron.readthedocs-hosted.com/en/latest/tools/neuron-sys-tools/neuron-ls.html
NEURON_COMMAND = (
    '[ "$(ls -d /dev/neuron[0-9]* | wc -l)" = {devices} ] && neuron-ls && '
    "nccom-test -r {ranks} -b 32MB -e 32MB allr"
)
