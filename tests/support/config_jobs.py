"""Cluster files with one job, for the tests of what is wrong with it."""

from typing import Any

from tests.support.config_documents import with_job
from tests.support.pools import NEURON_POOL, POOL, SYSTEM_POOL

VOLCANO = {"queueing": "volcano"}
CLAIM = {"namespace": "training", "name": "data", "mount_path": "/data"}
LUSTRE = {
    "lustre": [
        {
            "name": "scratch",
            "zone": "us-west-2b",
            "capacity_gib": 1200,
            "throughput_mbps_per_tib": 250,
            "claim": CLAIM,
        }
    ]
}
G6 = ["g6e.12xlarge", "g6.12xlarge", "g5.12xlarge"]


def job(*pools: dict[str, Any], **keys: Any) -> dict[str, Any]:
    """Return a cluster file with one job, of its pools or the one of 16 trn1 nodes."""
    return with_job(**keys) | {"pools": [SYSTEM_POOL, *(pools or (NEURON_POOL,))]}


def gpus(**keys: Any) -> dict[str, Any]:
    return job(POOL, pool="train", **keys)


def trn(**keys: Any) -> dict[str, Any]:
    return job(pool="train", **keys)


def own(path: str) -> dict[str, Any]:
    """Return a volume of a claim that the cluster file does not make."""
    return {"claim": "own", "mount_path": path, "existing": True}
