"""Starts vLLM on a node of a replica once all of its nodes have a pod.

Nodes are launched one by one, and vLLM's workers give up minutes after their start: the early ones
would end, and LeaderWorkerSet would start the whole replica again.
"""

import os
import socket
import sys
import time


def main() -> None:
    """Wait until the names of all pods of the replica resolve, then become the program."""
    leader, size = os.environ["LWS_LEADER_ADDRESS"], int(os.environ["LWS_GROUP_SIZE"])
    index = int(os.environ["LWS_WORKER_INDEX"])
    first, _, domain = leader.partition(".")
    names = [leader, *(f"{first}-{number}.{domain}" for number in range(1, size))]
    told = 0.0
    while missing := [name for name in names if not known(name)]:
        if time.monotonic() - told > 60:
            told = time.monotonic()
            print("wait for pods of this replica:", *missing, flush=True)
        time.sleep(2)
    group = [f"--nnodes={size}", f"--node-rank={index}", f"--master-addr={leader}"]
    words = [*sys.argv[1:], *group, *(["--headless"] if index else [])]
    os.execvp(words[0], words)


def known(name: str) -> bool:
    """Return whether the cluster's DNS has an address of ``name``."""
    try:
        return bool(socket.getaddrinfo(name, None))
    except socket.gaierror:
        return False


if __name__ == "__main__":
    main()
