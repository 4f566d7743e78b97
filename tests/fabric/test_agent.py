"""The program of the check's pods, packed as it is sent, in real processes."""

import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from ultrascale.parts.fabric import plan as gate
from ultrascale.parts.fabric import remote
from ultrascale.parts.fabric.agent import VERDICT, Peer, run, settings
from ultrascale.parts.fabric.gate import fabric_verdict

# Stands in for mpirun with nccl-tests: it starts something on the other node by `ssh`, as mpirun
# does, and prints a table as nccl-tests does.
MEASURE = """
import os, pathlib, signal, subprocess, sys
node, other, peer, slow, tcp, dying = sys.argv[1:]
if node in dying.split(","):
    # Between this and the pod is `timeout`.
    status = pathlib.Path(f"/proc/{os.getppid()}/stat").read_text()
    os.kill(int(status.split()[3]), signal.SIGKILL)
words = ["ssh", "-x", peer, "echo", "started", "on", "$ULTRASCALE_NODE"]
started = subprocess.run(words, capture_output=True, text=True)
assert started.stdout == f"started on {other}\\n", started
both = {node, other}
print(f"the log of {node} and {other}")
network = "Socket" if both & set(tcp.split(",")) else "Libfabric"
busbw = 9.5 if both & set(slow.split(",")) else 430.25
print(f"{node}:1:1 [0] NCCL INFO Using network {network}")
print(f"  1073741824 268435456 float sum -1 4600.0 230.0 {busbw} 0 4600.0 230.0 {busbw} 0")
"""


def pods(
    tmp_path: Path,
    count: int,
    *,
    slow: Sequence[str] = (),
    tcp: Sequence[str] = (),
    dying: Sequence[str] = (),
    files: int | None = None,
    **stated: object,
) -> list[list[str]]:
    """Run the pods of a check on this machine, and return their logs."""
    script = tmp_path / "measure.py"
    script.write_text(MEASURE)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    words = [sys.executable, str(script), "{node}", "{other}", "{peer}"]
    said = {
        "pods": count,
        "index": ["FIRST_INDEX", "VC_TASK_INDEX"],
        "port": port,
        "command": [*words, ",".join(slow), ",".join(tcp), ",".join(dying)],
        "slots": 8,
        "floor": 348.1,
        "share": None,
        "efa": True,
        "join_seconds": 30,
        "test_seconds": 20,
        "seconds": 120,
        **stated,
    }
    program = gate.program()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    limit = partial(resource.setrlimit, resource.RLIMIT_NOFILE, (files or 0, most))
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program["FABRIC_BOOT"]],
            env={
                "PATH": os.environ["PATH"],
                "FABRIC_SETTINGS": json.dumps(said),
                "FABRIC_TOKEN": "a secret",
                "FIRST_INDEX": "1",
                "VC_TASK_INDEX": str(index - 1),
                "POD_IP": "127.0.0.1",
                "RANK_ZERO_HOST": "127.0.0.1",
                "ULTRASCALE_NODE": f"node-{index}",
                **program,
            },
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=limit if files and index == 0 else None,
        )
        for index in range(count)
    ]
    logs = [pod.communicate(timeout=60)[0].splitlines() for pod in running]
    ended = {f"node-{index}": pod.returncode for index, pod in enumerate(running)}
    assert {node for node, status in ended.items() if status} == set(dying)
    return logs


def test_a_slow_node_and_one_that_falls_back_to_tcp_are_named(tmp_path: Path) -> None:
    # A first pod that may open few files meets all the others nevertheless.
    log, *others = pods(tmp_path, 6, slow=["node-3"], tcp=["node-2"], files=9)
    verdict = fabric_verdict(log)
    assert verdict.bad == {"node-2": "transport Socket, not EFA", "node-3": "9.5 GB/s, below 348.1"}
    assert not verdict.undecided
    assert (verdict.nodes, verdict.rounds, verdict.slowest) == (6, 2, 9.5)
    assert sum(line.startswith("fabric round=") for line in log) == 6
    assert log[-1].startswith(VERDICT)
    # The log of what failed can be read, and no other.
    told = [line for other in others for line in other if line.startswith("the log of")]
    assert "the log of node-2 and node-3" in told
    assert "the log of node-4 and node-5" not in told


def test_a_node_far_slower_than_the_best_is_bad_and_one_whose_pod_is_gone_is_not(
    tmp_path: Path,
) -> None:
    """A drain or a job of a higher priority may end a pod in the middle of a check."""
    log, *_ = pods(tmp_path, 6, slow=["node-0"], dying=["node-2"], floor=None, share=0.6)
    verdict = fabric_verdict(log)
    assert verdict.bad == {"node-0": "9.5 GB/s, below 60% of the best pair's 430.25"}
    assert verdict.undecided == {"node-2": "its pod ended, or gave no answer"}


def test_a_pod_that_ends_while_another_measures_with_it_is_gone() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            theirs.sendall(b'{"node": "a", "address": "10.0.0.1", "port": 1, "token": "right"}\n')
            peer = Peer(ours, "right")
            assert not peer.is_gone
        assert peer.is_gone


@pytest.mark.parametrize(
    "said",
    [
        b'{"node": "a", "address": "10.0.0.1", "port": 1, "token": "guessed"}',
        '{"token": "gerät"}'.encode(),
        b'["right"]',
        b"GET / HTTP/1.1",
    ],
)
def test_who_does_not_know_the_token_is_no_pod_of_the_check(said: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(said + b"\n")
        with pytest.raises(ValueError, match=r"not a pod|no message|Expecting value"):
            Peer(ours, "right")


def test_a_measurement_is_over_when_its_program_ends_whatever_that_has_left_behind() -> None:
    """The shell to a node that has died waits for it, and holds the program's output."""
    said = {
        "pods": 2,
        "index": [],
        "port": 1,
        "command": ["bash", "-c", "sleep 25 & echo $!"],
        "slots": 8,
        "floor": None,
        "share": None,
        "efa": True,
        "join_seconds": 1,
        "test_seconds": 20,
        "seconds": 1,
    }
    env = {"FABRIC_SETTINGS": json.dumps(said), remote.TOKEN: "t", "POD_IP": "127.0.0.1"}
    pair = {"lead": "a", "peer": "b", "node": "a", "other": "b", "shell": "b:1"}

    status, (left,) = run(settings(env), pair, "a:1")

    assert status == 0
    # A zombie has ended.
    assert Path(f"/proc/{left}/stat").read_text().split()[2] != "Z"
    os.kill(int(left), signal.SIGKILL)


def test_a_check_that_ultrascale_did_not_send_says_so() -> None:
    with pytest.raises(SystemExit, match="`ultrascale` sets it"):
        settings({"FABRIC_SETTINGS": "{}"})


def test_the_remote_shell_runs_nothing_without_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    server = remote.Server("right")
    monkeypatch.setenv(remote.PEERS, json.dumps({"peer": f"127.0.0.1:{server.port}"}))
    monkeypatch.setenv(remote.TOKEN, "wrong")
    assert remote.main(["peer", "touch", "/tmp/never"]) != 0
    monkeypatch.setenv(remote.TOKEN, "right")
    assert remote.main(["-o", "StrictHostKeyChecking=no", "-x", "peer", "exit", "7"]) == 7
    server.close()


def test_what_a_caller_has_started_on_another_node_ends_with_it(tmp_path: Path) -> None:
    """A measurement whose time was over would hold the node's devices in the next one."""
    server = remote.Server("right")
    told = tmp_path / "pid"
    os.mkfifo(told)
    words = ["-c", gate.program()["FABRIC_BOOT"], "ssh", "peer", f"echo $$ > {told}; sleep 600"]
    caller = subprocess.Popen(
        [sys.executable, *words],
        env={
            **gate.program(),
            "PATH": os.environ["PATH"],
            remote.TOKEN: "right",
            remote.PEERS: json.dumps({"peer": f"127.0.0.1:{server.port}"}),
        },
    )
    # A caller that ends at once opens no pipe, and a read would wait for ever.
    process = subprocess.run(["cat", told], timeout=60, check=True, capture_output=True, text=True)
    started = os.pidfd_open(int(process.stdout))

    caller.send_signal(signal.SIGKILL)
    caller.wait()

    ended, _, _ = select.select([started], [], [], 30)
    assert ended
    os.close(started)
    server.close()
