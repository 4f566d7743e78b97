"""Drain of services: a stopping pod first answers its begun requests.

A deleted pod leaves the endpoints of its Service at once, but clients learn of it later. The
kubelet runs the `preStop` hook first, then sends SIGTERM, and SIGKILL at the end of the grace
period, which counts from the hook's start.

vLLM aborts its requests at SIGTERM unless `--shutdown-timeout` is stated, which its older releases
lack: the hook waits for them.

Sources:
    https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination-flow
    https://github.com/vllm-project/vllm/blob/v0.32.0/vllm/entrypoints/launchers/launcher.py
"""

from collections.abc import Sequence

from ultrascale import config
from ultrascale.plan.jobs import vllm
from ultrascale.plan.jobs.programs import program
from ultrascale.plan.model import PoolPlan

# Time for the proxies of all nodes to forget a stopping pod.
_FORGET_SECONDS = 10
# Time after the hook for the server to end by itself.
_END_SECONDS = 5
LOOK_SECONDS = 20
"""Time in which each run of the liveness probe looks for progress."""
# An update or a drain of nodes takes one replica after the other.
_MAX_UNAVAILABLE = 1


def forget_seconds(job: config.ServiceJob) -> int:
    """Return how long a pod serves on while clients forget it; part of its grace period."""
    return min(_FORGET_SECONDS, max(1, job.grace_period_seconds // 2))


def liveness_of(job: config.ServiceJob) -> tuple[str, ...]:
    """Return the command that fails while ``job`` makes no progress; empty without metrics."""
    if not _counts_requests(job):
        return ()
    python = ("python3", "-c", program("makes_progress"), str(job.port), str(LOOK_SECONDS))
    # An image without it would be started anew for ever.
    return ("sh", "-c", 'command -v python3 >/dev/null || exit 0; exec "$@"', "alive", *python)


def _counts_requests(job: config.ServiceJob) -> bool:
    """Return whether the server has metrics of its requests, which tell what it has to do."""
    return config.server_of(job) == "vllm" and not vllm.options_of(job).disable_log_stats


def hook_of(job: config.ServiceJob) -> tuple[str, ...]:
    """Return the command of the `preStop` hook of ``job``; empty where it only pauses."""
    if not _counts_requests(job):
        return ()
    forget = forget_seconds(job)
    most = max(forget, job.grace_period_seconds - _END_SECONDS)
    python = ("python3", "-c", program("until_idle"), str(job.port), str(forget), str(most))
    # A failed hook ends at once, and the server's requests with it.
    return ("sh", "-c", f'"$@" || sleep {forget}', "drain", *python)


def max_unavailable(job: config.ServiceJob, pools: Sequence[PoolPlan]) -> int:
    """Return the most replicas that an eviction may take away at the same time.

    EC2 takes a Spot node two minutes after its notice. Karpenter and managed node groups evict its
    pods by the API, which waits for disruption budgets: a second replica on lost nodes would stay
    until the first is replaced, and be killed in the middle of its requests.

    Source:
    https://github.com/aws/karpenter-provider-aws/blob/v1.14.1/pkg/controllers/interruption/utils.go
    """
    spot = any(pool.purchase == "spot" for pool in pools)
    return job.most_replicas if spot else _MAX_UNAVAILABLE
