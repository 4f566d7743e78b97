"""A worker of torchrun without torch: rank 0 listens, the others hold a connection to it.

So a lost rank 0 ends the others at once, as it ends a collective. Each start is told in a file.

Usage: meeting_worker.py FOLDER
"""

import json
import os
import socket
import sys
import time
import uuid
from pathlib import Path


def main(folder: Path) -> int:
    world = int(os.environ["WORLD_SIZE"])
    rank = int(os.environ["RANK"])
    address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    peers: list[socket.socket] = []
    if rank == 0:
        with socket.create_server(address) as server:
            peers = [server.accept()[0] for _ in range(world - 1)]
    else:
        peers = [connected(address)]
    told = {"rank": rank, "world": world, "pid": os.getpid(), "node": os.environ["NODE"]}
    temporary = folder / f"{uuid.uuid4()}.tmp"
    temporary.write_text(json.dumps(told))
    temporary.rename(temporary.with_suffix(".json"))
    for peer in peers:
        peer.setblocking(False)
    while not (folder / "stop").exists():
        for peer in peers:
            try:
                if not peer.recv(1):
                    return 1
            except BlockingIOError:
                pass
        time.sleep(0.05)
    return 0


def connected(address: tuple[str, int]) -> socket.socket:
    for _ in range(200):
        try:
            return socket.create_connection(address)
        except ConnectionRefusedError:
            time.sleep(0.05)
    raise TimeoutError(f"nobody listens at {address}")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
