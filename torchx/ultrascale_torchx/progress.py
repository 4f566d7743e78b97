"""State of a job in the terms of TorchX."""

from collections.abc import Mapping

from torchx.schedulers.api import DescribeAppResponse, ListAppResponse
from torchx.specs import AppState, ReplicaStatus, Role, RoleStatus

from ultrascale.jobs.pods import Pod, PodState
from ultrascale.jobs.status import JobStatus
from ultrascale.jobs.workloads import WorkloadState

# Without a pod, a job has no container that would state its role.
_NO_ROLE = "worker"
_STOPPED = frozenset({"Aborted", "Terminated"})
_STATES: Mapping[PodState, AppState] = {
    "pending": AppState.PENDING,
    "scheduled": AppState.PENDING,
    "pulling": AppState.PENDING,
    "running": AppState.RUNNING,
    "terminating": AppState.RUNNING,
    "succeeded": AppState.SUCCEEDED,
    "failed": AppState.FAILED,
}


def app_id(namespace: str, name: str) -> str:
    """Return the id of a job in the form of TorchX's own scheduler for Kubernetes."""
    return f"{namespace}:{name}"


def place(app: str, namespace: str) -> tuple[str, str]:
    """Return the namespace and name in a job's id; an id without a namespace gets ``namespace``."""
    stated, _, name = app.rpartition(":")
    return stated or namespace, name


def response(status: JobStatus) -> DescribeAppResponse:
    """Return the state of a job and its pods, as TorchX's `describe` answers it."""
    role = status.pods[0].container if status.pods else _NO_ROLE
    replicas = [_replica(role, number, pod) for number, pod in enumerate(status.pods)]
    return DescribeAppResponse(
        app_id=app_id(status.namespace, status.name),
        state=_state(status.state),
        num_restarts=status.state.retries,
        msg=status.state.reason,
        roles=[Role(name=role, image="", num_replicas=status.state.wanted)],
        roles_statuses=[RoleStatus(role=role, replicas=replicas)],
    )


def listed(status: JobStatus) -> ListAppResponse:
    """Return the state of a job, as TorchX's `list` answers it."""
    return ListAppResponse(app_id=app_id(status.namespace, status.name), state=_state(status.state))


def _replica(role: str, number: int, pod: Pod) -> ReplicaStatus:
    return ReplicaStatus(
        id=number,
        state=_STATES[pod.state],
        role=role,
        hostname=pod.node,
        structured_error_msg=pod.reason,
    )


def _state(state: WorkloadState) -> AppState:
    if state.result == "succeeded":
        return AppState.SUCCEEDED
    if state.result == "failed":
        return AppState.CANCELLED if state.phase in _STOPPED else AppState.FAILED
    return AppState.RUNNING if state.up else AppState.PENDING
