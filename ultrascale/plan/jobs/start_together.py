"""Runs a program on a node of a replica while all of its nodes do, and ends with the first to end.

Nodes are launched one by one, and vLLM's workers give up minutes after their start: programs of all
pods meet at the first one before any of them starts. One that ends takes the others along, and the
kubelet starts them anew in their pods: with their last lines, their number of restarts, and a pause
that grows.
"""

import os
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress

_GO = b"go\n"
_STOPS = (signal.SIGTERM, signal.SIGINT)


def main() -> None:
    """Meet at the port of the first argument, then run the others until one pod's program ends.

    The second says whose options the program takes for its place in the replica: vLLM's, or none.
    """
    leader, size = os.environ["LWS_LEADER_ADDRESS"], int(os.environ["LWS_GROUP_SIZE"])
    index, port = int(os.environ["LWS_WORKER_INDEX"]), int(sys.argv[1])
    for number in _STOPS:
        # The first process of a container gets no signal for which it has no handler.
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    links = join(leader, port, index) if index else gather(port, size)
    group = [f"--nnodes={size}", f"--node-rank={index}", f"--master-addr={leader}"]
    group += ["--headless"] if index else []
    words = [*sys.argv[3:], *(group if sys.argv[2] == "vllm" else [])]
    sys.exit(ended(started(words), links))


def started(words: "list[str]") -> "subprocess.Popen[bytes]":
    """Return the program of ``words``, which gets each later signal of this one."""
    # A signal between its start and the handlers would be lost: it waits for them.
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)
    program = subprocess.Popen(words, preexec_fn=let_through)
    for number in _STOPS:
        signal.signal(number, lambda number, _: program.send_signal(number))
    let_through()
    return program


def let_through() -> None:
    """Take the signals that stop a program again."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)


def ended(program: "subprocess.Popen[bytes]", links: "dict[int, socket.socket]") -> int:
    """Return the status of ``program``, or 1 once another pod of the replica has ended."""
    while program.poll() is None:
        readable, _, _ = select.select([*links.values()], [], [], 1)
        lost = [pod for pod, link in links.items() if link in readable and not is_open(link)]
        # A pod that stops ends at about the same time as the others.
        if lost and waited(program, 5) is None:
            say(f"pod {lost[0]} of this replica has ended, so this one ends: see its log")
            program.kill()
            return 1
    # A shell's way to tell a signal.
    return program.returncode if program.returncode >= 0 else 128 - program.returncode


def waited(program: "subprocess.Popen[bytes]", seconds: float) -> "int | None":
    """Return the status of ``program`` if it ends in time."""
    with suppress(subprocess.TimeoutExpired):
        return program.wait(seconds)
    return None


def gather(port: int, size: int) -> "dict[int, socket.socket]":
    """Return the connection of each other pod of the replica once all are there."""
    found: dict[int, socket.socket] = {}
    told = 0.0
    with listener(port) as server:
        server.settimeout(1)
        while len(found) < size - 1:
            with suppress(OSError, ValueError):
                link = server.accept()[0]
                keep_alive(link)
                link.settimeout(5)
                pod = int(link.recv(16))
                if 0 < pod < size:
                    found[pod] = link
            readable, _, _ = select.select([*found.values()], [], [], 0)
            found = {pod: link for pod, link in found.items() if link not in readable}
            if time.monotonic() - told > 60:
                told = time.monotonic()
                say("wait for pods of this replica:", *({*range(1, size)} - found.keys()))
    for link in found.values():
        with suppress(OSError):
            link.sendall(_GO)
    return found


def join(leader: str, port: int, index: int) -> "dict[int, socket.socket]":
    """Return the connection to the first pod once all pods of the replica are there."""
    told = 0.0
    while True:
        with suppress(OSError):
            link = socket.create_connection((leader, port), timeout=5)
            keep_alive(link)
            link.sendall(b"%d\n" % index)
            link.settimeout(None)
            if link.recv(len(_GO)) == _GO:
                return {0: link}
        if time.monotonic() - told > 60:
            told = time.monotonic()
            say("wait for the first pod of this replica:", leader)
        time.sleep(2)


def listener(port: int) -> socket.socket:
    """Return the server of the first pod, for addresses of both families."""
    with suppress(OSError):
        return socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", port))


def keep_alive(link: socket.socket) -> None:
    """Let a connection end within about a minute after the other node is lost."""
    link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, 15), (socket.TCP_KEEPINTVL, 15)):
        link.setsockopt(socket.IPPROTO_TCP, option, value)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4)


def is_open(link: socket.socket) -> bool:
    """Return whether the other side of a connection that is readable still has it."""
    try:
        return bool(link.recv(16))
    except OSError:
        return False


def say(*words: object) -> None:
    """Write a line into the log of the pod."""
    print(*words, flush=True)


if __name__ == "__main__":
    main()
