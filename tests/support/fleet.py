"""Nodes as the pools of a plan make them, and pods on them, as the API server lists them."""

from typing import Any

from ultrascale.plan.model import ClusterPlan, PoolPlan

Object = Any
HYPERPOD_LABELS = {
    "sagemaker.amazonaws.com/compute-type": "hyperpod",
    "sagemaker.amazonaws.com/node-health-status": "Schedulable",
}


def pool(plan: ClusterPlan, name: str) -> PoolPlan:
    """Return the pool of a plan."""
    (found,) = (each for each in plan.all_pools if each.name == name)
    return found


def labels(plan: PoolPlan) -> dict[str, str]:
    """Return the labels of a node of a pool, those of its instance and of HyperPod among them."""
    own = HYPERPOD_LABELS if plan.provisioner == "hyperpod" else {}
    return {**plan.labels, **own, "node.kubernetes.io/instance-type": plan.node_types[0]}


def node(name: str, plan: PoolPlan, *, ready: bool = True, health: str | None = None) -> Object:
    """Return a node of a pool; ``health`` replaces HyperPod's word on it."""
    told = {"sagemaker.amazonaws.com/node-health-status": health} if health else {}
    amounts = {plan.accelerator: str(plan.accelerators_per_node)} if plan.accelerator else {}
    if plan.efa_interfaces:
        amounts["vpc.amazonaws.com/efa"] = str(plan.efa_interfaces)
    found: dict[str, Any] = {
        "metadata": {"name": name, "labels": {**labels(plan), **told}},
        "spec": {},
        "status": {
            "allocatable": {"cpu": "95690m", **amounts},
            "conditions": [{"type": "Ready", "status": "True" if ready else "Unknown"}],
        },
    }
    return found


def pod(
    name: str,
    on: str | None = None,
    *,
    asks: str = "8",
    resource: str = "nvidia.com/gpu",
    namespace: str = "training",
    job: str | None = None,
    phase: str | None = None,
    **spec: Any,
) -> Object:
    """Return a pod that asks for accelerators, on a node or waiting for one."""
    place = {"nodeName": on} if on else {}
    found: dict[str, Any] = {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"ultrascale.dev/job": job} if job else {},
        },
        "spec": {
            **place,
            "containers": [{"resources": {"limits": {resource: asks}}}, {"resources": {}}],
            **spec,
        },
        "status": {"phase": phase or ("Running" if on else "Pending")},
    }
    return found


def exporter(name: str, on: str, ip: str) -> Object:
    """Return a pod of the GPU exporter."""
    found: dict[str, Any] = {
        "metadata": {
            "name": name,
            "namespace": "kube-system",
            "labels": {"app.kubernetes.io/name": "dcgm-exporter"},
        },
        "spec": {"nodeName": on, "containers": [{}]},
        "status": {"podIP": ip, "phase": "Running"},
    }
    return found
