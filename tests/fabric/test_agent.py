"""The program of the check's pods, packed as it is sent, in real processes."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from ultrascale.fabric import remote
from ultrascale.fabric.agent import VERDICT
from ultrascale.jobs.gate import fabric_verdict
from ultrascale.plan.jobs import gate

# Stands in for mpirun with nccl-tests: it starts something on the other node by `ssh`, as mpirun
# does, and prints a table as nccl-tests does.
MEASURE = """
import subprocess, sys
node, other, peer, slow, tcp = sys.argv[1:]
words = ["ssh", "-x", peer, "echo", "started", "on", "$ULTRASCALE_NODE"]
started = subprocess.run(words, capture_output=True, text=True)
assert started.stdout == f"started on {other}\\n", started
both = {node, other}
network = "Socket" if both & set(tcp.split(",")) else "Libfabric"
busbw = 9.5 if both & set(slow.split(",")) else 430.25
print(f"{node}:1:1 [0] NCCL INFO Using network {network}")
print(f"  1073741824 268435456 float sum -1 4600.0 230.0 {busbw} 0 4600.0 230.0 {busbw} 0")
"""


def pods(
    tmp_path: Path, count: int, *, slow: Sequence[str] = (), tcp: Sequence[str] = ()
) -> list[str]:
    """Run the pods of a check on this machine, and return the log of the first."""
    script = tmp_path / "measure.py"
    script.write_text(MEASURE)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    words = [sys.executable, str(script), "{node}", "{other}", "{peer}"]
    said = {
        "pods": count,
        "index": ["FIRST_INDEX", "VC_TASK_INDEX"],
        "port": port,
        "command": [*words, ",".join(slow), ",".join(tcp)],
        "slots": 8,
        "floor": 348.1,
        "efa": True,
        "join_seconds": 30,
        "test_seconds": 20,
        "seconds": 120,
    }
    program = gate.program()
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program["FABRIC_BOOT"]],
            env={
                "PATH": os.environ["PATH"],
                "FABRIC_SETTINGS": json.dumps(said),
                "FIRST_INDEX": "1",
                "VC_TASK_INDEX": str(index - 1),
                "POD_IP": "127.0.0.1",
                "RANK_ZERO_HOST": "127.0.0.1",
                "ULTRASCALE_NODE": f"node-{index}",
                **program,
            },
            stdout=subprocess.PIPE,
            text=True,
        )
        for index in range(count)
    ]
    logs = [pod.communicate(timeout=60)[0] for pod in running]
    assert [pod.returncode for pod in running] == [0] * count
    return logs[0].splitlines()


def test_pods_measure_each_other_and_name_the_slow_node(tmp_path: Path) -> None:
    log = pods(tmp_path, 6, slow=["node-3"])
    verdict = fabric_verdict(log)
    assert verdict.bad == {"node-3": "9.5 GB/s, below 348.1"}
    assert not verdict.undecided
    assert (verdict.nodes, verdict.rounds, verdict.slowest) == (6, 2, 9.5)
    assert sum(line.startswith("fabric round=") for line in log) == 6
    assert log[-1].startswith(VERDICT)


def test_a_node_that_falls_back_to_tcp_is_named_by_its_transport(tmp_path: Path) -> None:
    verdict = fabric_verdict(pods(tmp_path, 4, tcp=["node-0"]))
    assert verdict.bad == {"node-0": "transport Socket, not EFA"}


def test_the_remote_shell_runs_nothing_without_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    server = remote.Server("right")
    monkeypatch.setenv(remote.PEERS, json.dumps({"peer": f"127.0.0.1:{server.port}"}))
    monkeypatch.setenv(remote.TOKEN, "wrong")
    assert remote.main(["peer", "touch", "/tmp/never"]) != 0
    monkeypatch.setenv(remote.TOKEN, "right")
    assert remote.main(["-o", "StrictHostKeyChecking=no", "-x", "peer", "exit", "7"]) == 7
    server.close()
