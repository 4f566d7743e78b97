"""Agents of torchrun that join a rendezvous by the hundred, and start no processes.

Each is torch's own agent, with the options that a pod's command gives torchrun: it meets the
others, learns its ranks, and leaves with them through the barrier at the end. They are threads of
a few processes, since each has megabytes of its own otherwise.

Measure by hand: ``python -m tests.support.joining_agents --backend static 8 64 512``
"""

# Here torch may be missing, and its types are partial.
# pyright: basic, reportMissingImports=false, reportPrivateImportUsage=false

import argparse
import json
import logging
import os
import random
import resource
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any, ClassVar

from torch.distributed import run
from torch.distributed.elastic.agent.server.api import RunResult, SimpleElasticAgent, WorkerState
from torch.distributed.elastic.rendezvous import dynamic_rendezvous
from torch.distributed.launcher import api as launcher

from tests.support.etcd_server import free_ports, running_etcd

PROCESSES = 2
_STACK_BYTES = 512 * 1024


class Agent(SimpleElasticAgent):
    """An agent whose processes have done their work as soon as they are told their ranks."""

    joined: ClassVar[list[dict[str, Any]]] = []
    began: ClassVar[float] = 0.0
    names_steps: ClassVar[bool] = False

    def __init__(self, spec: Any, **_: Any) -> None:
        super().__init__(spec)

    def _start_workers(self, worker_group: Any) -> dict[int, Any]:
        told = {
            "address": self._worker_group.spec.local_addr,
            "node_rank": worker_group.group_rank,
            "ranks": [worker.global_rank for worker in worker_group.workers],
            "world": worker_group.workers[0].world_size,
            "main": worker_group.master_addr,
            "seconds": time.time() - Agent.began,
        }
        Agent.joined.append(told)
        return {worker.local_rank: worker.local_rank for worker in worker_group.workers}

    def _monitor_workers(self, worker_group: Any) -> RunResult:
        done = {worker.global_rank: None for worker in worker_group.workers}
        return RunResult(state=WorkerState.SUCCEEDED, return_values=done)

    def _stop_workers(self, worker_group: Any, *_: Any, **__: Any) -> None:
        """There are none."""

    def _shutdown(self, *_: Any, **__: Any) -> None:
        """There is nothing to end."""


def join(nodes: Sequence[Sequence[str]], *, seconds: float = 240) -> list[dict[str, Any]]:
    """Let an agent join for each of ``nodes``, given by torchrun's options, in any order.

    Returns:
        What the agents were told, with the time at which each knew its ranks.

    Raises:
        TimeoutError: Some have not joined in time.
        RuntimeError: An agent failed.
    """
    shuffled = list(nodes)
    random.Random(0).shuffle(shuffled)
    fork = get_context("fork")
    began = time.time()
    answers = []
    children = []
    for number in range(PROCESSES):
        reading, writing = fork.Pipe(duplex=False)
        child = fork.Process(target=_host, args=(shuffled[number::PROCESSES], began, writing))
        child.start()
        writing.close()
        answers.append(reading)
        children.append(child)
    try:
        told: list[dict[str, Any]] = []
        for answer in answers:
            if not answer.poll(max(0.0, began + seconds - time.time())):
                raise TimeoutError(f"{len(nodes)} agents have not joined within {seconds:.0f} s")
            found = answer.recv()
            if isinstance(found, str):
                raise RuntimeError(found)
            told += found
        return told
    finally:
        for child in children:
            child.kill()
            child.join()


def _host(nodes: Sequence[Sequence[str]], began: float, answer: Any) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    logging.disable(logging.ERROR)
    os.environ["TORCH_CPP_LOG_LEVEL"] = "ERROR"
    # torch asks DNS for the names of its peers, for its log. Here an answer may never come.
    os.environ["RES_OPTIONS"] = "timeout:1 attempts:1"
    if not Agent.names_steps:
        # torch names a step of its own log by the sources of the whole stack.
        dynamic_rendezvous.get_method_name = lambda depth=2: sys._getframe(depth).f_code.co_name
    # Its agent starts processes; all else of the launcher is what torchrun runs.
    launcher.LocalElasticAgent = Agent
    Agent.began = began
    threading.stack_size(_STACK_BYTES)
    try:
        with ThreadPoolExecutor(len(nodes)) as pool:
            for done in [pool.submit(_launch, options) for options in nodes]:
                done.result()
        answer.send(Agent.joined)
    except BaseException as error:
        answer.send(f"{type(error).__name__}: {error}")
    # What is left of the store's threads is not waited for.
    os._exit(0)


def _launch(options: Sequence[str]) -> None:
    asked = run.parse_args([*options, "train.py"])
    if asked.rdzv_backend == "static" and asked.node_rank:
        _wait_for(asked.master_addr, asked.master_port)
    config, _, _ = run.config_from_args(asked)
    config.monitor_interval = 0.1
    launcher.launch_agent(config, "train.py", [])


def _wait_for(host: str, port: int) -> None:
    """Wait until the first agent listens, as the command of a pod does."""
    while True:
        with suppress(OSError), socket.create_connection((host, port)):
            return
        time.sleep(0.2)


def _address(index: int) -> str:
    """Return an address of a node whose text sorts unlike its index."""
    return f"127.0.{index % 256}.{255 - index // 256}"


def _agents_joined(backend: str, nodes: int, port: int) -> dict[str, float]:
    """Return when the last of ``nodes`` agents had joined."""
    common = [f"--nnodes={nodes}", "--nproc-per-node=8", "--max-restarts=0", f"--rdzv-id={nodes}"]
    found = []
    for index in range(nodes):
        own = [f"--local-addr={_address(index)}"]
        if backend == "static":
            own += [f"--node-rank={index}", "--master-addr=127.0.0.1", f"--master-port={port}"]
            own += ["--rdzv-conf=timeout=1800"]
        else:
            conf = "join_timeout=1800" + (f",is_host={index == 0}" if backend == "c10d" else "")
            own += [f"--rdzv-endpoint=127.0.0.1:{port}", f"--rdzv-conf={conf}"]
        found.append([*common, f"--rdzv-backend={backend}", *own])
    told = join(found)
    return {"nodes": nodes, "seconds": max(each["seconds"] for each in told)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Let agents join, or measure how long they take.")
    parser.add_argument("--told", type=Path, help="Folder of nodes.json, which gets told.json.")
    parser.add_argument("--backend", choices=("static", "c10d", "etcd-v3"))
    parser.add_argument("nodes", type=int, nargs="*")
    parser.add_argument(
        "--names-steps", action="store_true", help="Let torch name the steps of its log itself."
    )
    asked = parser.parse_args()
    Agent.names_steps = asked.names_steps
    if asked.told is not None:
        told = join(json.loads((asked.told / "nodes.json").read_text()))
        (asked.told / "told.json").write_text(json.dumps(told))
    for nodes in asked.nodes:
        try:
            print(json.dumps(_measured(asked.backend, nodes)), flush=True)
        except TimeoutError as error:
            print(error, flush=True)


def _measured(backend: str, nodes: int) -> dict[str, float]:
    if backend != "etcd-v3":
        return _agents_joined(backend, nodes, *free_ports(1))
    with tempfile.TemporaryDirectory() as folder, running_etcd(Path(folder)) as etcd:
        return _agents_joined(backend, nodes, etcd.port)


if __name__ == "__main__":
    main()
