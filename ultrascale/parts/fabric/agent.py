"""The program of each pod of a fabric check: meets the others, measures, and names bad nodes.

The pod of index 0 leads: it sends pairs their measurements, round by round, and prints the verdict
as its last line. The others measure until the first pod closes the connection. A pod that leads a
failed measurement prints its log. A bad node is a result and no failure: every pod ends with 0 once
there is a verdict.
"""

import json
import os
import resource
import select
import shlex
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

from ultrascale.parts.fabric import logs, remote
from ultrascale.parts.fabric.rounds import Pair, Search, in_order

VERDICT = "fabric-verdict "
"""Begin of the line with the verdict, in the log of the first pod; JSON follows."""

Message = Mapping[str, object]


@dataclass(frozen=True)
class Settings:
    """Decisions of the plan for a check, from the environment."""

    pods: int  # Pods of the check
    index: int  # Index of this one
    node: str  # Name of its node
    address: str  # Its IP address
    host: str  # Host name of the first pod
    port: int  # TCP port on which the first pod listens
    token: str  # Secret of the check, which all its pods know
    # Command that measures a pair, with `{lead}`, `{peer}`, `{slots}`, `{ranks}` in it
    command: tuple[str, ...]
    slots: int  # Ranks on each node
    floor: float | None  # Least bus bandwidth, in GB/s; None where none is known
    # Least share of the bus bandwidth of the best pair; None: pairs are not compared
    share: float | None
    efa: bool  # Whether any other transport than EFA is a failure
    groups: Mapping[str, str]  # Path of network groups of each node
    join_seconds: float  # Time for the pods to come
    test_seconds: float  # Time for one measurement
    seconds: float  # Time for all rounds; a round that may not end in it is not begun


def settings(env: Mapping[str, str]) -> Settings:
    """Return the settings that a pod's environment holds."""
    if not env.get(remote.TOKEN):
        raise SystemExit(f"{remote.TOKEN} is missing: `ultrascale` sets it when it sends a check")
    said = json.loads(env["FABRIC_SETTINGS"])
    index = sum(int(env.get(name) or 0) for name in said["index"])
    return Settings(
        pods=said["pods"],
        index=index,
        node=env.get("ULTRASCALE_NODE") or env["POD_IP"],
        address=env["POD_IP"],
        host=env.get("RANK_ZERO_HOST") or env["POD_IP"],
        port=said["port"],
        token=env[remote.TOKEN],
        command=tuple(said["command"]),
        slots=said["slots"],
        floor=said["floor"],
        share=said["share"],
        efa=said["efa"],
        groups=json.loads(env.get("FABRIC_GROUPS") or "{}"),
        join_seconds=said["join_seconds"],
        test_seconds=said["test_seconds"],
        seconds=said["seconds"],
    )


@dataclass(frozen=True)
class Measured:
    """The measurement of a pair."""

    pair: Pair  # The nodes
    busbw: float | None  # Bus bandwidth in GB/s; None where nothing was measured
    transport: str | None  # Transport by the log; None where it does not say
    why: str  # Reason of the failure; empty where it passed


def judge(
    pair: Pair, output: Sequence[str], status: int, *, floor: float | None, efa: bool
) -> Measured:
    """Return the verdict on the log of one measurement.

    Args:
        pair: The nodes.
        output: Lines of the log.
        status: Exit status of the program; 124 after a timeout.
        floor: Least bus bandwidth, in GB/s.
        efa: Whether any other transport than EFA is a failure.
    """
    reading = logs.read(output)
    why = ""
    if status == _LATE:
        why = "no result in time"
    elif status or reading.busbw is None:
        last = next((line.strip() for line in reversed(output) if line.strip()), "no output")
        why = f"exit status {status}: {last[:200]}"
    elif reading.wrong:
        why = f"{reading.wrong} wrong values"
    elif efa and reading.transport not in (logs.EFA, None):
        why = f"transport {reading.provider}, not EFA"
    elif floor is not None and reading.busbw < floor:
        why = f"{reading.busbw:g} GB/s, below {floor:g}"
    return Measured(pair=pair, busbw=reading.busbw, transport=reading.transport, why=why)


# Exit status of the program `timeout`.
_LATE = 124


class Peer:
    """A connected pod, from the first pod's side.

    Args:
        connection: Its connection.
        token: Secret of the check.

    Raises:
        ValueError: The pod does not know the secret.
    """

    def __init__(self, connection: socket.socket, token: str) -> None:
        self._connection = connection
        self._stream = cast("BinaryIO", connection.makefile("rwb"))
        hello = remote.read(self._stream)
        if not remote.is_token(hello.get("token"), token):
            raise ValueError("not a pod of this check")
        self.node = str(hello["node"])
        self.address = str(hello["address"])
        self.shell = f"{self.address}:{hello['port']}"
        self._answers = True

    def measure(self, other: "Peer") -> Measured | None:
        """Let this pod measure itself with another; None where it does not answer."""
        asked = {"lead": self.address, "peer": other.address, "shell": other.shell}
        try:
            _send(self._stream, {**asked, "node": self.node, "other": other.node})
            said = remote.read(self._stream)
            return Measured(
                pair=(self.node, other.node),
                busbw=cast("float | None", said["busbw"]),
                transport=cast("str | None", said["transport"]),
                why=str(said["why"]),
            )
        except (OSError, ValueError, KeyError):
            self._answers = False
            return None

    @property
    def is_gone(self) -> bool:
        """Whether the pod has ended, or gave no answer. A pod sends nothing unless it is asked."""
        # Not select.select: it takes no descriptor above 1,023.
        poll = select.poll()
        poll.register(self._connection, select.POLLIN)
        return not self._answers or bool(poll.poll(0))


def lead(chosen: Settings) -> dict[str, object]:
    """Meet the pods, measure pairs until every node is judged, and return the verdict."""
    started = time.monotonic()
    _hold_connections(chosen.pods)
    server = socket.create_server(("", chosen.port), backlog=chosen.pods)
    threading.Thread(target=work, args=(chosen, "127.0.0.1"), daemon=True).start()
    peers = {peer.node: peer for peer in _connected_peers(server, chosen)}
    search = Search(nodes=in_order(chosen.groups, peers))
    tests: Mapping[str, Measured] = {}
    best = 0.0
    last_begin = time.monotonic() + chosen.seconds - chosen.test_seconds
    while (pairs := search.next_round()) and time.monotonic() <= last_begin:
        with ThreadPoolExecutor(max_workers=len(pairs)) as pool:
            answers = [*pool.map(partial(_measure, peers), pairs)]
        gone = [node for pair in pairs for node in pair if peers[node].is_gone]
        # A measurement without one of its pods proves nothing about the other's node.
        counted = [answer for answer in answers if answer and not set(gone) & set(answer.pair)]
        best = max([best, *(measured.busbw or 0 for measured in counted)])
        round_tests = [_compare_with_best(measured, best, chosen.share) for measured in counted]
        _print_round(search.rounds + 1, round_tests, gone)
        tests = _decisive_tests(tests, round_tests)
        search.lose(gone)
        search.record({measured.pair: not measured.why for measured in round_tests})
    return {
        "nodes": len(peers),
        "pods": chosen.pods,
        "rounds": search.rounds,
        "seconds": round(time.monotonic() - started),
        **_node_verdicts(search, tests),
        "paths": search.paths,
        "slowest": min((test.busbw for test in tests.values() if test.busbw), default=None),
    }


def _print_round(number: int, tests: Sequence[Measured], gone: Sequence[str]) -> None:
    for test in tests:
        result = "passed" if not test.why else f"failed: {test.why}"
        print(
            f"fabric round={number} nodes={','.join(test.pair)} "
            f"busbw={test.busbw} transport={test.transport} {result}",
            flush=True,
        )
    for node in gone:
        print(f"fabric round={number} nodes={node} gone", flush=True)


def _decisive_tests(
    tests: Mapping[str, Measured], round_tests: Sequence[Measured]
) -> Mapping[str, Measured]:
    """Return the decisive test of each node: its last failure, or else its first success."""
    decisive = dict(tests)
    for test in round_tests:
        for node in test.pair:
            if test.why or node not in decisive:
                decisive[node] = test
    return decisive


def _node_verdicts(search: Search, tests: Mapping[str, Measured]) -> Mapping[str, object]:
    """Return the bad nodes and the undecided nodes, each with the reason."""
    undecided = {
        node: tests[node].why if node in tests else "not measured" for node in search.suspects
    }
    lost = sorted(search.lost - search.good)
    undecided |= dict.fromkeys(lost, "its pod ended, or gave no answer")
    bad = {node: tests[node].why for node in sorted(search.bad)}
    return {"bad": bad, "undecided": undecided}


def _hold_connections(pods: int) -> None:
    """Raise this process's limit of open files: containers begin with 1,024 on some nodes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = pods + _FILES_BESIDE
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


_FILES_BESIDE = 1_024


def _measure(peers: Mapping[str, Peer], pair: Pair) -> Measured | None:
    one, other = (peers[node] for node in pair)
    return one.measure(other)


def _compare_with_best(measured: Measured, best: float, share: float | None) -> Measured:
    """Return ``measured``; as failed, if it is far slower than the best pair."""
    if share is None or measured.why or measured.busbw is None or measured.busbw >= share * best:
        return measured
    why = f"{measured.busbw:g} GB/s, below {share:.0%} of the best pair's {best:g}"
    return replace(measured, why=why)


def _connected_peers(server: socket.socket, chosen: Settings) -> list[Peer]:
    """Return the pods that connected in time."""
    peers: list[Peer] = []
    until = time.monotonic() + chosen.join_seconds
    while len(peers) < chosen.pods and (left := until - time.monotonic()) > 0:
        server.settimeout(left)
        try:
            connection, _ = server.accept()
            # A pod of the check sends its name at once; any other connection is closed.
            connection.settimeout(_HELLO_SECONDS)
            peers.append(Peer(connection, chosen.token))
            connection.settimeout(chosen.test_seconds + _GRACE_SECONDS)
        except (OSError, ValueError, KeyError):
            continue
    return peers


_HELLO_SECONDS = 10
# Seconds beyond a measurement's own limit.
_GRACE_SECONDS = 30


def work(chosen: Settings, host: str) -> None:
    """Measure the pairs that the first pod sends, until it closes the connection."""
    shell = remote.Server(chosen.token)
    with _connect(host, chosen) as connection:
        stream = cast("BinaryIO", connection.makefile("rwb"))
        hello = {"token": chosen.token, "node": chosen.node, "address": chosen.address}
        _send(stream, {**hello, "port": shell.port})
        while True:
            try:
                asked = remote.read(stream)
            except (OSError, ValueError):
                break
            status, output = run(chosen, asked, f"{chosen.address}:{shell.port}")
            pair = (str(asked["node"]), str(asked["other"]))
            measured = judge(pair, output, status, floor=chosen.floor, efa=chosen.efa)
            if measured.why:
                print("\n".join(output[-_MOST_LINES:]), flush=True)
            said = {"busbw": measured.busbw, "transport": measured.transport, "why": measured.why}
            _send(stream, said)
    shell.close()


# A log with NCCL_DEBUG=INFO has some thousands.
_MOST_LINES = 5_000


def _connect(host: str, chosen: Settings) -> socket.socket:
    until = time.monotonic() + chosen.join_seconds
    while True:
        try:
            connection = socket.create_connection((host, chosen.port), timeout=10)
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)
        else:
            connection.settimeout(None)
            return connection


def run(chosen: Settings, asked: Message, own_shell: str) -> tuple[int, list[str]]:
    """Run the measurement of this node and another, and return its exit status and its log.

    Args:
        chosen: Settings.
        asked: The first pod's message, with the pair.
        own_shell: Address of this pod's remote shell: a launcher may start its own node's processes
            by ssh as well.
    """
    words = {
        "lead": asked["lead"],
        "peer": asked["peer"],
        "node": asked["node"],
        "other": asked["other"],
        "slots": chosen.slots,
        "ranks": 2 * chosen.slots,
    }
    with tempfile.TemporaryDirectory() as folder:
        shell = Path(folder) / "ssh"
        shell.write_text(
            f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c "$FABRIC_BOOT" ssh "$@"\n'
        )
        shell.chmod(0o700)
        env = {
            **os.environ,
            remote.TOKEN: chosen.token,
            remote.PEERS: json.dumps({asked["lead"]: own_shell, asked["peer"]: asked["shell"]}),
            "PATH": f"{folder}:{os.environ.get('PATH', '')}",
        }
        limit = ["timeout", "--kill-after=10", f"{chosen.test_seconds:g}"]
        # No pipe: a shell to a dead node would hold its end open.
        told = Path(folder) / "log"
        with told.open("wb") as log:
            ended = subprocess.run(
                [*limit, *(word.format(**words) for word in chosen.command)],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=env,
                check=False,
            )
        return ended.returncode, told.read_text(errors="replace").splitlines()


def _send(stream: BinaryIO, message: Message) -> None:
    stream.write(json.dumps(message).encode() + b"\n")
    stream.flush()


def main(arguments: Sequence[str]) -> int:
    """Run the check on this pod, or stand in for ssh."""
    if arguments[:1] == ["ssh"]:
        return remote.main([*arguments[1:]])
    chosen = settings(os.environ)
    if chosen.index == 0:
        print(VERDICT + json.dumps(lead(chosen)), flush=True)
    else:
        work(chosen, chosen.host)
    return 0
