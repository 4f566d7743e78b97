"""Plan of a person's pod: a Job of one pod that ends when nobody uses it."""

import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from msgspec.structs import replace

from ultrascale.catalog.prices import catalog_prices
from ultrascale.parts.dev.part import DevJob
from ultrascale.plan import capacity
from ultrascale.plan.jobs import command, nodes, queueing
from ultrascale.plan.jobs.controllers import INDEXED
from ultrascale.plan.jobs.nodes import NodeShare
from ultrascale.plan.jobs.notes import notes_of
from ultrascale.plan.jobs.pods import SHUTDOWN_SHARE, plan_pod
from ultrascale.plan.jobs.request import JobRequest
from ultrascale.plan.model import JobPlan, RolePlan
from ultrascale.plan.needs.pools import price_as_bought

_CONTAINER = "main"
_HOUR = 3600
# Somebody who comes back the next morning learns why the pod ended.
_TTL_SECONDS = 86_400
_RETRIES = 3


def plan_dev(request: JobRequest, job: DevJob) -> JobPlan:
    """Plan a person's pod.

    Raises:
        CatalogError: No source states a value of an instance type.
    """
    pools = request.nodes
    share = nodes.node_share(job, pools)
    pod = replace(plan_pod(request, pools, share), command=_command(request, job))
    if request.queue is not None:
        pod = request.engine.in_queue(pod, request.queue, _CONTAINER)
    return JobPlan(
        name=request.name,
        namespace=request.namespace,
        kind=job.kind,
        controller=INDEXED.name,
        roles=(
            RolePlan(
                name=_CONTAINER,
                pods=1,
                container=_CONTAINER,
                pod=pod,
                mistake_exit_code=command.MISTAKE_EXIT_CODE,
            ),
        ),
        queue=request.queue,
        local_queue=queueing.local_queue_of(request),
        restarts=_RETRIES,
        ttl_seconds_after_finished=_TTL_SECONDS,
        notes=(*notes_of(request, pools, share, INDEXED), *_notes(request, job, share)),
    )


@cache
def program() -> str:
    """Return the source of the pod's first process, which needs nothing in its image but Python."""
    return (files("ultrascale.parts.dev") / "idle_loop.py").read_text("utf-8")


def _command(request: JobRequest, job: DevJob) -> tuple[str, ...]:
    folder = _folder(request)
    # A port is forwarded to the pod's own loopback; no other pod reaches it.
    jupyter = ["--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1"]
    jupyter += [f"--ServerApp.port={job.port}", "--ServerApp.port_retries=0"]
    if folder is not None:
        jupyter.append(f"--ServerApp.root_dir={folder}")
    options = {
        "idle_seconds": job.idle_hours * _HOUR,
        "grace_seconds": job.grace_period_seconds * SHUTDOWN_SHARE,
        "port": job.port,
        "folder": folder,
        "command": [*job.command, *job.args] if job.command else [],
        "jupyter": [*jupyter, *job.args],
    }
    words = ("python3", "-c", program(), json.dumps(options))
    return tuple(command.literal(word) for word in words)


def _folder(request: JobRequest) -> str | None:
    """Return the path of the first volume whose files can be renamed, as editors save them."""
    buckets = {claim.name for claim in request.mounted_claims if claim.source == "bucket"}
    for mount in request.mounts:
        if not mount.read_only and mount.claim not in buckets:
            return mount.mount_path
    return None


def _cost(request: JobRequest, job: DevJob) -> Iterator[str]:
    """Yield the price of the dearest node that may be launched for it."""
    prices = catalog_prices()
    launched = [pool for pool in request.nodes if pool.sized_by in capacity.SIZED_BY_PODS]
    known = [price_as_bought(pool, request.cluster.region, prices) for pool in launched]
    # A fee is paid whether a node is launched or not.
    values = [price.price.price for price in known if price.price is not None]
    if values:
        hourly = max(values)
        yield (
            f"A node that is launched for it costs up to ${hourly:,.2f} an hour until it ends: "
            f"${hourly * job.idle_hours:,.2f} for its idle time alone, unless other pods are there."
        )


def _notes(request: JobRequest, job: DevJob, share: NodeShare) -> Iterator[str]:
    hours = "1 hour" if job.idle_hours == 1 else f"{job.idle_hours:g} hours"
    yield (
        f"It ends after {hours} without use: no kernel computes, no file is saved, nobody types, "
        "and CPUs and GPUs are idle."
    )
    yield from _cost(request, job)
    if _folder(request) is None:
        yield (
            "It mounts no file system that it may write to: what editors save in it is lost when "
            "it ends; a claim under storage.lustre, or volumes, keeps it."
        )
    if share.whole and share.accelerators > 1:
        yield (
            f"It takes a whole node with {share.accelerators} accelerators: resources.gpu or "
            "resources.neuron leaves the others to other pods."
        )
    if spot := sorted({pool.pool for pool in request.nodes if pool.capacity_type == "spot"}):
        yield (
            f"EC2 takes Spot nodes of {' and '.join(spot)} back with two minutes' notice, and what "
            "runs in its kernels and shells is lost then."
        )
