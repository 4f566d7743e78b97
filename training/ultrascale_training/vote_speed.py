"""Measure the vote beside a collective of gloo: connections of a worker, and time in a step.

``torchrun … -m ultrascale_training.vote_speed`` measures a cluster; ``python -m
ultrascale_training.vote_speed --nodes 8 --workers 8`` measures processes of this machine.
"""

import argparse
import os
import socket
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from ultrascale_training import vote
from ultrascale_training.devices import connect_on_demand, under_torchrun

_TIMEOUT = timedelta(minutes=10)
# Votes between a vote and its answer, by the name of the way to agree.
_LAGS = {"vote": 1, "vote, waited for": 0}
_WARM_UP = 5


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Arguments of a measurement.

    Attributes:
        steps: Of each way to agree.
        pause: Seconds of a step.
        gloo: Whether to measure gloo's full mesh as well.
    """

    steps: int
    pause: float
    gloo: bool


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Figures of a worker.

    Attributes:
        role: Part that it has in the vote.
        sockets: That a way to agree keeps open, by its name.
        seconds: Of each step, by the same name.
    """

    role: str
    sockets: dict[str, int]
    seconds: dict[str, Sequence[float]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table on the first worker, and return the exit status."""
    parser = argparse.ArgumentParser(prog="vote_speed", description=__doc__)
    parser.add_argument("--nodes", type=int, default=2, help="pretended, without torchrun")
    parser.add_argument("--workers", type=int, default=4, help="of each node, without torchrun")
    parser.add_argument("--steps", type=int, default=50, help="steps of each way to agree")
    parser.add_argument("--step-seconds", type=float, default=0.1, help="pause of a step")
    parser.add_argument("--no-gloo", action="store_true", help="leave out gloo's full mesh")
    given = parser.parse_args(arguments)
    trial = Trial(steps=given.steps, pause=given.step_seconds, gloo=not given.no_gloo)
    if under_torchrun():
        _work(trial)
        return 0
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    sys.stdout.flush()
    pids = [
        _forked(rank, given.nodes, given.workers, port, trial)
        for rank in range(given.nodes * given.workers)
    ]
    return max(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0 for pid in pids)


def _forked(rank: int, nodes: int, workers: int, port: int, trial: Trial) -> int:
    """Start a worker that shares this process's imports, as sixty-four of torch take a minute."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        environment: dict[str, int | str] = {
            **{"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port},
            **{"RANK": rank, "WORLD_SIZE": nodes * workers},
            **{"GROUP_RANK": rank // workers, "GROUP_WORLD_SIZE": nodes},
            **{"LOCAL_RANK": rank % workers, "LOCAL_WORLD_SIZE": workers},
        }
        os.environ |= {name: str(value) for name, value in environment.items()}
        torch.set_num_threads(1)
        _work(trial)
        status = 0
    except Exception:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def _work(trial: Trial) -> None:
    connect_on_demand()
    dist.init_process_group("gloo", timeout=_TIMEOUT)
    measured = _measure(trial)
    gathered: list[Measured | None] = [None] * dist.get_world_size()
    dist.all_gather_object(gathered, measured)
    if dist.get_rank() == 0:
        print(_table([each for each in gathered if each is not None]), flush=True)
    dist.barrier()


def _measure(trial: Trial) -> Measured:
    rank, local = dist.get_rank(), int(os.environ.get("LOCAL_RANK", "0"))
    role = "first worker" if rank == 0 else "worker" if local else "first worker of a node"
    sockets: dict[str, int] = {}
    seconds: dict[str, Sequence[float]] = {}
    for name, lag in _LAGS.items():
        dist.barrier()
        before = _sockets()
        ballot = vote.join(_TIMEOUT, lag=lag)
        seconds[name] = _timed(lambda: ballot.cast(False), trial)  # noqa: B023
        sockets[name] = _sockets() - before
        ballot.close()
    dist.barrier()
    if not trial.gloo:
        return Measured(role=role, sockets=sockets, seconds=seconds)
    before = _sockets()
    os.environ["TORCH_GLOO_LAZY_INIT"] = "0"
    group = dist.new_group(backend="gloo", timeout=_TIMEOUT)
    wish = torch.zeros(1)
    seconds["gloo"] = _timed(lambda: dist.all_reduce(wish, group=group), trial)
    sockets["gloo"] = _sockets() - before
    return Measured(role=role, sockets=sockets, seconds=seconds)


def _timed(agree: Callable[[], object], trial: Trial) -> Sequence[float]:
    """Return the seconds that each step waits to agree, the first ones left out."""
    found: list[float] = []
    for _ in range(trial.steps + _WARM_UP):
        time.sleep(trial.pause)
        begin = time.perf_counter()
        agree()
        found.append(time.perf_counter() - begin)
    return found[_WARM_UP:]


def _sockets() -> int:
    """Return the open sockets of this process."""
    found = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        # It may be gone by the time it is looked at.
        with suppress(OSError):
            found += str(descriptor.readlink()).startswith("socket:")
    return found


def _table(workers: Sequence[Measured]) -> str:
    lines = [f"{len(workers)} workers"]
    for name in workers[0].sockets:
        counts: dict[str, set[int]] = {}
        for worker in workers:
            counts.setdefault(worker.role, set()).add(worker.sockets[name])
        told = ", ".join(
            f"{role} {min(found)}" + (f" to {max(found)}" if len(found) > 1 else "")
            for role, found in counts.items()
        )
        times = sorted(time for worker in workers for time in worker.seconds[name])
        late = times[int(0.99 * len(times))]
        lines.append(
            f"{name}: {1000 * statistics.median(times):.2f} ms in a step (median), "
            f"{1000 * late:.2f} ms (99 of 100 are faster); sockets: {told}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
