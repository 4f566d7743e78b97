"""A node group in an account that is recorded, and a cluster file, for the commands of day 2."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.account import connects
from tests.support.fake_aws import FakeAws, Told
from tests.support.pools import POOL, SYSTEM_POOL, as_text, make_document

GROUPS = "autoscaling:DescribeAutoScalingGroups"
LIST, DESCRIBE = "eks:ListNodegroups", "eks:DescribeNodegroup"
EKS_SETS, OURS_SETS = "eks:UpdateNodegroupConfig", "autoscaling:UpdateAutoScalingGroup"
ACTIVITIES = "autoscaling:DescribeScalingActivities"
MANAGED = POOL | {"instance_types": ["m7g.8xlarge"], "nodes": {"min": 1, "max": 8}}
BEFORE = datetime(2026, 11, 30, tzinfo=UTC)


class Groups:
    """The node group of a pool: it launches one instance at each look."""

    def __init__(self, desired: int, *, status: str = "ACTIVE", stuck: bool = False) -> None:
        self.desired, self.running, self.status, self.stuck = desired, desired, status, stuck
        self.minimum = 1
        self.issues: list[dict[str, str]] = []

    @property
    def answers(self) -> dict[str, Told]:
        return {
            LIST: {"nodegroups": ["system-x", "train-x"]},
            DESCRIBE: self._node_group,
            GROUPS: self._group,
            EKS_SETS: self._eks_sets,
            OURS_SETS: self._ours_sets,
            ACTIVITIES: {
                "Activities": [
                    {
                        "ActivityId": "a",
                        "AutoScalingGroupName": "asg",
                        "Cause": "c",
                        "StartTime": BEFORE,
                        "StatusCode": "Failed",
                        "StatusMessage": "InsufficientInstanceCapacity",
                    }
                ]
            },
        }

    def _node_group(self, asked: dict[str, Any]) -> dict[str, Any]:
        pool = asked["nodegroupName"][:-2]
        return {
            "nodegroup": {
                "nodegroupName": asked["nodegroupName"],
                "status": self.status,
                "health": {"issues": self.issues},
                "labels": {"ultrascale.dev/pool": pool},
                "resources": {"autoScalingGroups": [{"name": f"asg-{pool}"}]},
            }
        }

    def _group(self, _: dict[str, Any]) -> dict[str, Any]:
        if not self.stuck:
            self.running += (self.desired > self.running) - (self.desired < self.running)
        instance = {
            "InstanceId": "i-1",
            "AvailabilityZone": "us-west-2b",
            "LifecycleState": "InService",
            "HealthStatus": "Healthy",
            "ProtectedFromScaleIn": False,
        }
        group = {
            "AutoScalingGroupName": "asg-train",
            "MinSize": self.minimum,
            "MaxSize": 8,
            "DesiredCapacity": self.desired,
            "DefaultCooldown": 300,
            "AvailabilityZones": ["us-west-2b"],
            "HealthCheckType": "EC2",
            "CreatedTime": BEFORE,
            "Instances": [instance] * self.running,
        }
        return {"AutoScalingGroups": [group]}

    def _eks_sets(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.desired = asked["scalingConfig"]["desiredSize"]
        self.minimum = asked["scalingConfig"]["minSize"]
        return {"update": {}}

    def _ours_sets(self, asked: dict[str, Any]) -> dict[str, Any]:
        self.desired, self.minimum = asked["DesiredCapacity"], asked["MinSize"]
        return {}


def has(monkeypatch: pytest.MonkeyPatch, answers: dict[str, Told]) -> FakeAws:
    return connects(monkeypatch, answers)


def written(folder: Path, *pools: dict[str, Any]) -> Path:
    path = folder / "cluster.yaml"
    changes: dict[str, Any] = {"pools": [SYSTEM_POOL, *pools]}
    if any(pool["provisioner"] == "karpenter" for pool in pools):
        changes["karpenter"] = {"version": "1.15.2"}
    path.write_text(as_text(make_document(**changes)))
    return path
