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
from ultrascale_training.failures import FailureLog
from ultrascale_training.hangs import Hang
from ultrascale_training.vote import Place, StopVote


def start(  # type: ignore
    port: int, rank: int, places: list[Place], folder: Path, *, waits: bool = False
) -> "SERVER.Process":  # type: ignore
    """Start a worker; its end, and the hangs that it notices, are files of ``folder``.

    Args:
        port: Of the store.
        rank: Its own.
        places: Of all workers.
        folder: As above; its ``output`` is that of the run.
        waits: After its first vote it waits for ever, as in a collective of a GPU.
    """
    given = (port, rank, places, str(folder), waits)
    worker = SERVER.Process(target=_vote, args=given, daemon=True)
    worker.start()
    return worker


def _vote(port: int, rank: int, places: list[Place], folder: str, waits: bool) -> None:
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
        on_lost=FailureLog(f"{folder}/output", grace_seconds=0.2).lost if waits else None,
        address="127.0.0.1",
    )
    try:
        while not vote.cast(Path(folder, "stop").exists()):
            told(f"votes-{rank}", vote._casts)
            time.sleep(600 if waits else 0.02)
        vote.close()
        told(f"end-{rank}", "stopped")
    except VoteLost as lost:
        told(f"end-{rank}", str(lost))
