"""Reading of the logs of nccl-tests and nccom-test: bus bandwidth, transport, wrong values.

Sources:
    https://github.com/NVIDIA/nccl-tests/blob/v2.18.3/doc/PERFORMANCE.md
    https://awsdocs-neuron.readthedocs-hosted.com/en/latest/tools/neuron-sys-tools/nccom-test.html
    https://github.com/aws/aws-ofi-nccl (the plugin logs the provider that it selected)
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

EFA, TCP, OTHER = "efa", "tcp", "other"

# Open MPI's --tag-output, Kubernetes' timestamps.
_PREFIX = re.compile(r"^\s*(?:\[\d+,\d+\]<std(?:out|err)>:|\d{4}-\d\d-\d\dT[\d:.]+Z )\s*")
_TYPE = re.compile(r"^(?:u?int\d+|float\d*|half|double|bfloat16|[fb]p?\d+(?:e\dm\d)?|f8e\dm\d)$")
_PROVIDER = re.compile(r"NET/OFI Selected [Pp]rovider is ([^\s,]+)")
_NETWORK = re.compile(r"Using network (.+?)\s*$")
_CHANNEL = re.compile(r"via NET/([^/]+)/")
_LIBFABRIC = re.compile(r"Libfabric|OFI|SENDRECV|RDMA", re.IGNORECASE)
# Time, algorithm bandwidth, bus bandwidth and wrong values: out of place, then in place. nccom-test
# has the first three, and in later releases the algorithm.
_NCCL_COLUMNS, _NCCOM_COLUMNS = 8, (3, 4)


@dataclass(frozen=True)
class Reading:
    """Figures and transport of one measurement, from its log."""

    # Bus bandwidth of the largest message, in GB/s; None without a row of results
    busbw: float | None
    size: int  # Bytes of that message
    transport: str | None  # `efa`, `tcp` or `other`; None where the log does not say
    provider: str  # libfabric's provider, or NCCL's name of the network, as in the log
    wrong: int  # Number of wrong values in the results


def read(lines: Iterable[str]) -> Reading:
    """Return the figures in a log of nccl-tests or nccom-test; lines of other forms are skipped."""
    busbw: float | None = None
    size = wrong = 0
    providers: list[str] = []
    networks: list[str] = []
    for raw in lines:
        line = _PREFIX.sub("", raw)
        if (row := _row(line)) is not None:
            wrong += row[2]
            if busbw is None or row[0] >= size:
                size, busbw = row[0], row[1]
        elif found := _PROVIDER.search(line):
            providers.append(found[1])
        elif found := _NETWORK.search(line) or _CHANNEL.search(line):
            networks.append(found[1])
    transport, provider = _transport(providers, networks)
    return Reading(busbw=busbw, size=size, transport=transport, provider=provider, wrong=wrong)


def _row(line: str) -> tuple[int, float, int] | None:
    """Return bytes, bus bandwidth and wrong values in a row of results; None for another line."""
    words = line.split()
    if len(words) < 3 + _NCCOM_COLUMNS[0] or not (words[0].isdigit() and words[1].isdigit()):
        return None
    if not _TYPE.match(words[2]):
        return None
    rest = words[3:]
    try:
        if len(rest) >= _NCCL_COLUMNS:
            columns = rest[-_NCCL_COLUMNS:]
            return int(words[0]), float(columns[2]), _count(columns[3]) + _count(columns[7])
        if len(rest) in _NCCOM_COLUMNS:
            return int(words[0]), float(rest[2]), 0
    except ValueError:
        return None
    return None


def _count(word: str) -> int:
    # Releases before 2.12 print the largest error here, such as 4e-07; N/A: not checked.
    return int(word) if word.isdigit() else 0


def _transport(providers: list[str], networks: list[str]) -> tuple[str | None, str]:
    """Return the slowest transport of any rank, and its name in the log."""
    for provider in providers:
        if not provider.startswith("efa"):
            is_tcp = any(word in provider for word in ("tcp", "sockets", "udp"))
            return (TCP if is_tcp else OTHER), provider
    for network in networks:
        if network == "Socket":
            return TCP, network
    for network in networks:
        if not _LIBFABRIC.search(network):
            return OTHER, network
    if providers:
        return EFA, providers[0]
    # The plugin uses TCP's provider only by configuration, and logs it.
    return (EFA, networks[0]) if networks else (None, "")
