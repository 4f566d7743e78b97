"""Entry point by which torchrun finds the rendezvous backend."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch.distributed.elastic.rendezvous.api import RendezvousHandler, RendezvousParameters

    Creator = Callable[[RendezvousParameters], RendezvousHandler]


def etcd_v3() -> "Creator":
    """Return the factory of handlers for ``--rdzv-backend etcd-v3``."""
    return _create


def _create(params: "RendezvousParameters") -> "RendezvousHandler":
    # torch calls the entry point while its own package is imported, perhaps by a module of this
    # package that is itself not yet complete.
    from ultrascale_training.rendezvous.etcd_v3 import create

    return create(params)
