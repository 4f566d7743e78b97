"""The services that the function behind node groups asks, stubbed."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import boto3
from botocore.stub import Stubber

from ultrascale.lambdas.node_groups.handler import Clients

CLUSTER = "research"
STACK = "arn:aws:cloudformation:us-west-2:111122223333:stack/research-train/1"
POOL = {"ultrascale.dev/pool": "train"}


class Aws:
    """Services that answer what they are told to and nothing else."""

    def __init__(self) -> None:
        session = boto3.Session("x", "x", region_name="us-west-2")
        self.eks = session.client("eks")
        self.autoscaling = session.client("autoscaling")
        self.cloudformation = session.client("cloudformation")
        self._eks = Stubber(self.eks)
        self._autoscaling = Stubber(self.autoscaling)
        self._cloudformation = Stubber(self.cloudformation)

    @property
    def clients(self) -> Clients:
        return Clients(
            eks=self.eks, autoscaling=self.autoscaling, cloudformation=self.cloudformation
        )

    def has_stack(self, status: str) -> None:
        found = {
            "StackName": "research-train",
            "CreationTime": "2026-11-01T00:00:00Z",
            "StackStatus": status,
        }
        self._cloudformation.add_response(
            "describe_stacks", {"Stacks": [found]}, {"StackName": STACK}
        )

    def has_no_stack(self) -> None:
        self._cloudformation.add_client_error("describe_stacks", "ValidationError", "no")

    def suspends_rebalancing(self, group: str) -> None:
        asked = {"AutoScalingGroupName": group, "ScalingProcesses": ["AZRebalance"]}
        self._autoscaling.add_response("suspend_processes", {}, asked)

    def does_not_suspend(self) -> None:
        self._autoscaling.add_client_error("suspend_processes", "ResourceInUse", "no")

    def lists(self, *names: str, token: str | None = None, after: str | None = None) -> None:
        asked = {"clusterName": CLUSTER} | ({"nextToken": after} if after else {})
        told: dict[str, Any] = {"nodegroups": [*names]} | ({"nextToken": token} if token else {})
        self._eks.add_response("list_nodegroups", told, asked)

    def describes(
        self,
        name: str,
        *,
        status: str = "ACTIVE",
        labels: dict[str, str] = POOL,
        groups: tuple[str, ...] | None = None,
    ) -> None:
        names = (f"eks-{name}",) if groups is None else groups
        group = {
            "nodegroupName": name,
            "status": status,
            "labels": labels,
            "resources": {"autoScalingGroups": [{"name": each} for each in names]},
            # Behind the Auto Scaling group: nobody may believe it.
            "scalingConfig": {"minSize": 1, "maxSize": 99, "desiredSize": 99},
        }
        asked = {"clusterName": CLUSTER, "nodegroupName": name}
        self._eks.add_response("describe_nodegroup", {"nodegroup": group}, asked)

    def has_self_managed(self, **sizes: int) -> None:
        """Answer with the groups of the pool that EKS does not manage."""
        asked = [
            {"Name": f"tag:kubernetes.io/cluster/{CLUSTER}", "Values": ["owned"]},
            *({"Name": f"tag:{key}", "Values": [value]} for key, value in POOL.items()),
        ]
        self._autoscaling.add_response(
            "describe_auto_scaling_groups",
            {"AutoScalingGroups": [_group(name, size) for name, size in sizes.items()]},
            {"Filters": asked},
        )

    def has(self, group: str, size: int) -> None:
        self._asks([group], [_group(group, size)])

    def has_lost(self, group: str) -> None:
        self._asks([group], [])

    def fails(self, operation: str, code: str) -> None:
        self._eks.add_client_error(operation, code, "no")

    def tags(self, group: str, tags: dict[str, str]) -> None:
        asked = [
            {**tag(group, key), "Value": value, "PropagateAtLaunch": False}
            for key, value in tags.items()
        ]
        self._autoscaling.add_response("create_or_update_tags", {}, {"Tags": asked})

    def untags(self, group: str, *keys: str) -> None:
        asked = {"Tags": [tag(group, key) for key in keys]}
        self._autoscaling.add_response("delete_tags", {}, asked)

    def _asks(self, names: list[str], found: list[dict[str, Any]]) -> None:
        self._autoscaling.add_response(
            "describe_auto_scaling_groups",
            {"AutoScalingGroups": found},
            {"AutoScalingGroupNames": names},
        )

    @contextmanager
    def expecting(self) -> Generator[None]:
        with self._eks, self._autoscaling, self._cloudformation:
            yield
            self._eks.assert_no_pending_responses()
            self._autoscaling.assert_no_pending_responses()
            self._cloudformation.assert_no_pending_responses()


def tag(group: str, key: str) -> dict[str, str]:
    return {"ResourceId": group, "ResourceType": "auto-scaling-group", "Key": key}


def _group(name: str, size: int) -> dict[str, Any]:
    return {
        "AutoScalingGroupName": name,
        "MinSize": 0,
        "MaxSize": 99,
        "DesiredCapacity": size,
        "DefaultCooldown": 300,
        "AvailabilityZones": ["us-west-2b"],
        "HealthCheckType": "EC2",
        "CreatedTime": "2026-11-01T00:00:00Z",
    }
