"""Logs of nccl-tests and nccom-test are read: figures, transport and wrong values."""

from collections.abc import Sequence

import pytest

from tests.support.folders import ROOT
from ultrascale.parts.fabric import logs
from ultrascale.parts.fabric.agent import judge

DATA = ROOT / "tests" / "data" / "fabric"
# Excerpts of public logs; the first line of each says of which, and at what commit.
PUBLIC = {
    "p4d-efa": (32.71, 2**30, "efa", "efa"),
    "one-gpu-tcp": (2.0, 2**30, "tcp", "Socket"),
    "one-gpu-efa": (2.83, 2**30, "efa", "efa"),
    "p5": (444.31, 2**31, None, ""),
    "h100": (338.82, 2**33, None, ""),
    "trn1": (47.09, 2**30, None, ""),
}
ROW = "1073741824 268435456 float sum -1 4553.6 235.80 442.13 0 4553.0 235.83 442.19 0"
SELECTED = "h:1:1 [0] NCCL INFO NET/OFI Selected provider is"


def lines_of(name: str) -> list[str]:
    return (DATA / f"{name}.log").read_text().splitlines()


@pytest.mark.parametrize("name", PUBLIC)
def test_public_logs_are_read(name: str) -> None:
    read = logs.read(lines_of(name))
    assert (read.busbw, read.size, read.transport, read.provider) == PUBLIC[name]
    assert read.wrong == 0


@pytest.mark.parametrize("name", sorted(path.stem for path in DATA.glob("*.log")))
def test_each_excerpt_names_its_log_and_commit(name: str) -> None:
    first = lines_of(name)[0]
    assert name in PUBLIC
    assert first.startswith("# Excerpt of https://github.com/")
    assert len(first.split("/blob/")[1].split("/")[0]) == 40


def test_a_table_of_nccom_test_with_the_algorithm_is_read() -> None:
    row = "1073741824       268435456    fp32       41806          23.92          47.09  Ring"
    assert logs.read([row]).busbw == 47.09


TRANSPORTS: dict[str, tuple[list[str], str | None]] = {
    "EFA's direct fabric": ([f"{SELECTED} efa, fabric is efa-direct (found 32 nics)"], "efa"),
    "Libfabric by channel": (["Channel 00/0 : 7[3] -> 0[0] [receive] via NET/Libfabric/0"], "efa"),
    "libfabric's TCP": ([f"{SELECTED} tcp;ofi_rxm"], "tcp"),
    "libfabric's sockets": ([f"{SELECTED} sockets, fabric is 10.0.0.0/8 (found 1 nics)"], "tcp"),
    "sockets by channel": (["Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Socket/0"], "tcp"),
    "one rank of two": (["Using network Libfabric", "Using network Socket"], "tcp"),
    "InfiniBand": (["h:1:1 [0] NCCL INFO Using network IB"], "other"),
    "an interface for the start alone": (
        ["NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>"],
        None,
    ),
    "nothing": ([], None),
}


@pytest.mark.parametrize("case", TRANSPORTS)
def test_the_slowest_transport_of_any_rank_counts(case: str) -> None:
    lines, transport = TRANSPORTS[case]
    assert logs.read([*lines, ROW]).transport == transport


JUDGED: dict[str, tuple[Sequence[str], int, str]] = {
    "well": ([ROW], 0, ""),
    "slow": ([ROW.replace("442.13", "120.5")], 0, "120.5 GB/s, below 348.1"),
    "TCP at full speed": (["NCCL INFO Using network Socket", ROW], 0, "transport Socket, not EFA"),
    "wrong values": ([ROW[:-1] + "3"], 0, "3 wrong values"),
    "out of time": ([], 124, "no result in time"),
    "an error": (
        ["", "NCCL WARN Cuda failure 'an illegal memory access'", ""],
        1,
        "exit status 1: NCCL WARN Cuda failure 'an illegal memory access'",
    ),
    "no table": (["bye"], 0, "exit status 0: bye"),
}


@pytest.mark.parametrize("case", JUDGED)
def test_a_pair_passes_or_says_why_not(case: str) -> None:
    lines, status, why = JUDGED[case]
    assert judge(("a", "b"), lines, status, floor=348.1, efa=True).why == why


def test_nodes_without_efa_may_use_tcp() -> None:
    lines = ["NCCL INFO Using network Socket", ROW]
    assert judge(("a", "b"), lines, 0, floor=None, efa=False).why == ""
