"""One node of a job: what torchrun would make of the backend, and what it does with it."""

# Here torch may be missing, and its types are partial.
# pyright: basic, reportMissingImports=false, reportPrivateImportUsage=false

import sys
from typing import Any

from torch.distributed.elastic.rendezvous import dynamic_rendezvous
from torch.distributed.elastic.rendezvous.api import RendezvousHandler, RendezvousParameters
from torch.distributed.elastic.rendezvous.registry import get_rendezvous_handler

from ultrascale_training.rendezvous.etcd_keys import JobKeys
from ultrascale_training.rendezvous.etcd_v3 import EtcdV3Backend, keys_of


def _caller(depth: int = 2) -> str:
    """Name a step in torch's log; torch itself looks through the sources of the whole stack."""
    return sys._getframe(depth).f_code.co_name


dynamic_rendezvous.get_method_name = _caller


def parameters(
    endpoint: str, job: str = "job", *, nodes: int = 1, **conf: Any
) -> RendezvousParameters:
    return RendezvousParameters(
        "etcd-v3", endpoint, job, nodes, nodes, local_addr="127.0.0.1", **conf
    )


def make_handler(endpoint: str, job: str, *, nodes: int = 1, **conf: Any) -> RendezvousHandler:
    """Return what torchrun would get for ``--rdzv-backend etcd-v3``."""
    conf = {"last_call_timeout": 1, "join_timeout": 30, "close_timeout": 5} | conf
    return get_rendezvous_handler(parameters(endpoint, job, nodes=nodes, **conf))


def make_keys(endpoint: str, job: str = "job", **conf: Any) -> JobKeys:
    conf = {"read_timeout": 2, "retry_timeout": 20, "lease_ttl": 60} | conf
    return keys_of(parameters(endpoint, job, **conf))


def make_backend(endpoint: str, job: str) -> EtcdV3Backend:
    return EtcdV3Backend(make_keys(endpoint, job))


def join(endpoint: str, job: str, nodes: int) -> tuple[int, int, bytes, int]:
    """Join as one node, and return its rank, the world, what rank 0 said, and its count."""
    handler = make_handler(endpoint, job, nodes=nodes)
    info = handler.next_rendezvous()
    if info.rank == 0:
        info.store.set("from rank 0", "hello")
    # Nobody leaves before all have counted, as in torchrun's exit barrier.
    count = info.store.add("count", 1)
    if count == nodes:
        info.store.set("all", "1")
    info.store.wait(["all"])
    said = info.store.get("from rank 0")
    handler.shutdown()
    return info.rank, info.world_size, said, count
