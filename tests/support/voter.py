"""A worker that votes until it is told to stop, as a process that can be killed or stopped."""

# Here torch may be missing, and its types are partial.
# pyright: basic, reportMissingImports=false, reportPrivateImportUsage=false

import json
import os
import time
from datetime import timedelta
from pathlib import Path

import torch.distributed as dist

from tests.support.forked import SERVER
from ultrascale_training.errors import VoteLost
from ultrascale_training.hangs import Hang
from ultrascale_training.vote import Place, StopVote


def start(port: int, rank: int, places: list[Place], folder: Path) -> "SERVER.Process":  # type: ignore
    """Start a worker; its end, and the hangs that it notices, are files of ``folder``."""
    worker = SERVER.Process(target=_vote, args=(port, rank, places, str(folder)), daemon=True)
    worker.start()
    return worker


def _vote(port: int, rank: int, places: list[Place], folder: str) -> None:
    os.environ["ULTRASCALE_NODE"] = f"node-{places[rank].node}"

    def told(name: str, what: object) -> None:
        partial = Path(folder, f".{name}")
        partial.write_text(json.dumps(what))
        partial.rename(Path(folder, name))

    def notice(hang: Hang) -> None:
        told("hang", hang.suspects)

    vote = StopVote(
        dist.TCPStore("127.0.0.1", port, is_master=False),
        rank=rank,
        world=len(places),
        timeout=timedelta(seconds=60),
        place=places[rank],
        hang_seconds=0.5,
        on_hang=notice,
        address="127.0.0.1",
    )
    try:
        while not vote.cast(Path(folder, "stop").exists()):
            told(f"votes-{rank}", vote._casts)
            time.sleep(0.02)
        vote.close()
        told(f"end-{rank}", "stopped")
    except VoteLost as lost:
        told(f"end-{rank}", str(lost))
