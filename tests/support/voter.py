"""A worker that votes until it is told to stop, as a process that can be killed or stopped."""

# Here torch may be missing, and its types are partial.
# pyright: basic, reportMissingImports=false, reportPrivateImportUsage=false

import json
import os
import time
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from tests.support.forked import SERVER
from ultrascale_training.errors import VoteLost
from ultrascale_training.failures import FailureLog
from ultrascale_training.hangs import Hang, keep_state, report_hang
from ultrascale_training.vote import Place, StopVote, join


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


def start_colleague(port: int, rank: int, output: Path) -> "SERVER.Process":  # type: ignore
    """Start one of two workers; the first waits in a collective of gloo for the second."""
    worker = SERVER.Process(target=_colleague, args=(port, rank, str(output)), daemon=True)
    worker.start()
    return worker


def _colleague(port: int, rank: int, output: str) -> None:
    os.environ |= {"RANK": str(rank), "MASTER_ADDR": "127.0.0.1", "ULTRASCALE_NODE": f"node-{rank}"}
    store = dist.TCPStore("127.0.0.1", port, is_master=False)
    dist.init_process_group("gloo", store=dist.PrefixStore("gloo", store), rank=rank, world_size=2)
    failures = FailureLog(output)
    vote = join(
        timedelta(seconds=60),
        hang_seconds=0.5,
        on_hang=lambda hang: report_hang(hang, failures, None),
        on_asked=lambda suspected: keep_state(failures, suspected=suspected),
    )
    vote.cast(False)
    with vote.working() if rank else nullcontext():
        if rank:
            time.sleep(600)
    dist.all_reduce(torch.ones(1))
