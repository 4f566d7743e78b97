"""What the cluster file may say already, although nothing builds it yet."""

from collections.abc import Iterator

from ultrascale import config

_PROVISIONERS = ("managed-node-group",)
_PURCHASE_OPTIONS = ("on-demand",)
_SECTIONS = (
    "karpenter",
    "jobs",
    "hyperpod",
    "agreed_limits",
    "backend",
    "observability",
    "pipeline",
)
_LEAVE_OUT = "leave it out"


def unsupported(cluster: config.Cluster) -> Iterator[tuple[str, str]]:
    """Yield the key path of everything that is not built yet, with what to do instead."""
    for index, pool in enumerate(cluster.pools):
        where = f"pools.{index}"
        if pool.provisioner not in _PROVISIONERS:
            yield (
                f"{where}.provisioner",
                f"not supported yet, got {pool.provisioner!r}; use {_PROVISIONERS[0]}",
            )
        if pool.purchase.option not in _PURCHASE_OPTIONS:
            yield (
                f"{where}.purchase.option",
                f"not supported yet, got {pool.purchase.option!r}; use {_PURCHASE_OPTIONS[0]}",
            )
        if pool.shards > 1:
            yield f"{where}.shards", f"not supported yet, got {pool.shards!r}; use 1"
    for index, lustre in enumerate(cluster.storage.lustre):
        if lustre.s3 is not None:
            yield f"storage.lustre.{index}.s3", f"not supported yet; {_LEAVE_OUT}"
        if lustre.efa:
            yield f"storage.lustre.{index}.efa", "not supported yet, got True; use false"
    if cluster.scheduling.rendezvous.backend == "etcd":
        # torch's own backend of that name speaks the v2 API; the v3 one comes with the jobs.
        wrong = "not supported yet, got 'etcd'; use c10d, or etcd-v2 for torch's own etcd backends"
        yield "scheduling.rendezvous.backend", wrong
    yield from _unsupported_sections(cluster)


def _unsupported_sections(cluster: config.Cluster) -> Iterator[tuple[str, str]]:
    for key in _SECTIONS:
        if key in cluster.model_fields_set:
            yield key, f"not supported yet; {_LEAVE_OUT}"
    if cluster.storage.buckets:
        yield "storage.buckets", f"not supported yet; {_LEAVE_OUT}"
