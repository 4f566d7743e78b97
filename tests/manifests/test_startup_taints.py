"""A pod that comes before the driver of its file system waits, and its gang waits with it."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.node_pool_plans import LUSTRE, STATIC, planned

CPU: Mapping[str, Any] = {"instance_types": ["m7g.8xlarge"], "zones": None}


@pytest.mark.parametrize("changes", [{}, STATIC], ids=["dynamic", "static"])
def test_accelerated_nodes_wait_for_the_driver_of_their_file_systems(
    changes: Mapping[str, Any],
) -> None:
    (taint,) = planned(storage=LUSTRE, **changes).node_pool.startup_taints

    assert (taint.key, taint.effect) == ("fsx.csi.aws.com/agent-not-ready", "NoExecute")


def test_accelerated_nodes_wait_for_the_driver_of_the_buckets_that_jobs_mount() -> None:
    storage = {"buckets": ["checkpoints"], "default_claims": True}
    (taint,) = planned(storage=storage).node_pool.startup_taints

    assert (taint.key, taint.effect) == ("s3.csi.aws.com/agent-not-ready", "NoExecute")


@pytest.mark.parametrize(
    ("provisioner", "storage", "changes"),
    [
        ("karpenter", None, {}),
        ("karpenter", {"buckets": ["checkpoints"]}, {}),
        ("karpenter", LUSTRE, CPU),
        ("auto-mode", LUSTRE, {}),
    ],
    ids=["no file system", "a bucket that is not mounted", "no accelerators", "auto mode"],
)
def test_no_other_node_gets_a_taint_that_it_might_keep(
    provisioner: str, storage: Mapping[str, Any] | None, changes: Mapping[str, Any]
) -> None:
    assert planned(provisioner, storage=storage, **changes).node_pool.startup_taints == ()
