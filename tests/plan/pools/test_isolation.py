"""Isolation without taints: which nodes need it, and by what they are told from others."""

from typing import Any

from tests.support.pools import HYPERPOD_POOL, make_pool
from ultrascale.parts.hyperpod.plan import plan_isolation
from ultrascale.plan.model import PoolPlan
from ultrascale.plan.pools.pool import plan_pool

HYPERPOD = {key: HYPERPOD_POOL[key] for key in ("provisioner", "purchase", "nodes")}
CHECKED = HYPERPOD | {"deep_health_checks": True, "role": "reserved"}


def pool(name: str, **changes: Any) -> PoolPlan:
    return plan_pool(make_pool(name=name, **changes), kubernetes_version="1.35")


def test_pools_that_can_have_taints_need_no_policy() -> None:
    assert plan_isolation([pool("one"), pool("two", **HYPERPOD)]) is None


def test_nodes_without_taints_are_told_by_their_labels() -> None:
    found = plan_isolation([pool("a", **CHECKED), pool("b", **CHECKED), pool("c", **HYPERPOD)])

    assert found is not None
    assert found.node_labels == {
        "ultrascale.dev/pool": ("a", "b"),
        "node-type": ("a", "b"),
        "ultrascale.dev/role": ("reserved",),
        "node.kubernetes.io/instance-type": ("ml.p5.48xlarge",),
        "sagemaker.amazonaws.com/compute-type": ("hyperpod",),
    }


def test_every_label_is_on_every_such_node() -> None:
    """`DoesNotExist` keeps a pod off only where the label is on all of them."""
    checked = pool("a", **CHECKED)

    found = plan_isolation([checked])

    assert found is not None
    set_by_aws = {"node.kubernetes.io/instance-type", "sagemaker.amazonaws.com/compute-type"}
    assert found.node_labels.keys() - set_by_aws <= checked.labels.keys()


def test_pods_of_awss_own_controllers_are_left_alone() -> None:
    found = plan_isolation([pool("a", **CHECKED)])

    assert found is not None
    assert {"kube-system", "aws-hyperpod", "kubeflow", "kueue-system"} <= {*found.exempt_namespaces}
    # Of parts of AWS's chart that a user may turn on.
    assert {"cert-manager", "keda", "hyperpod-inference-system"} <= {*found.exempt_namespaces}
    assert "training" not in found.exempt_namespaces
