"""AWS as the function behind node groups sees it: node groups and what lies behind them."""

from datetime import UTC, datetime
from typing import Any

from tests.support.fake_aws import FakeAws, Refusal
from ultrascale.lambdas.node_groups.handler import Clients

CLUSTER = "research"
STACK = "arn:aws:cloudformation:us-west-2:111122223333:stack/research-train/1"
POOL = {"ultrascale.dev/pool": "train"}
_BEFORE = datetime(2026, 11, 1, tzinfo=UTC)


class Aws(FakeAws):
    """Services in the order in which the test foresees their requests."""

    @property
    def clients(self) -> Clients:
        return Clients(
            eks=self.client("eks"),
            autoscaling=self.client("autoscaling"),
            cloudformation=self.client("cloudformation"),
        )

    def has_stack(self, status: str) -> None:
        answer = {"Stacks": [stack("research-train", status)]}
        self.expect("cloudformation:DescribeStacks", answer, {"StackName": STACK})

    def has_no_stack(self) -> None:
        self.fails("cloudformation:DescribeStacks", "ValidationError")

    def suspends_rebalancing(self, group: str) -> None:
        asked = {"AutoScalingGroupName": group, "ScalingProcesses": ["AZRebalance"]}
        self.expect("autoscaling:SuspendProcesses", {}, asked)

    def does_not_suspend(self) -> None:
        self.fails("autoscaling:SuspendProcesses", "ResourceInUse")

    def lists(self, *names: str, token: str | None = None, after: str | None = None) -> None:
        asked = {"clusterName": CLUSTER} | ({"nextToken": after} if after else {})
        told: dict[str, Any] = {"nodegroups": [*names]} | ({"nextToken": token} if token else {})
        self.expect("eks:ListNodegroups", told, asked)

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
            "resources": {"autoScalingGroups": [{"name": behind} for behind in names]},
            # Behind the Auto Scaling group: nobody may believe it.
            "scalingConfig": {"minSize": 1, "maxSize": 99, "desiredSize": 99},
        }
        asked = {"clusterName": CLUSTER, "nodegroupName": name}
        self.expect("eks:DescribeNodegroup", {"nodegroup": group}, asked)

    def has_self_managed(self, **sizes: int) -> None:
        """Answer with the groups of the pool that EKS does not manage."""
        asked = [
            {"Name": f"tag:kubernetes.io/cluster/{CLUSTER}", "Values": ["owned"]},
            *({"Name": f"tag:{key}", "Values": [value]} for key, value in POOL.items()),
        ]
        self.expect(
            "autoscaling:DescribeAutoScalingGroups",
            {"AutoScalingGroups": [auto_scaling_group(name, size) for name, size in sizes.items()]},
            {"Filters": asked},
        )

    def has(self, group: str, size: int) -> None:
        self._asks([group], [auto_scaling_group(group, size)])

    def has_lost(self, group: str) -> None:
        self._asks([group], [])

    def fails(self, action: str, code: str) -> None:
        self.expect(action, Refusal(code))

    def tags(self, group: str, tags: dict[str, str]) -> None:
        asked = [
            {**tag(group, key), "Value": value, "PropagateAtLaunch": False}
            for key, value in tags.items()
        ]
        self.expect("autoscaling:CreateOrUpdateTags", {}, {"Tags": asked})

    def untags(self, group: str, *keys: str) -> None:
        asked = {"Tags": [tag(group, key) for key in keys]}
        self.expect("autoscaling:DeleteTags", {}, asked)

    def _asks(self, names: list[str], groups: list[dict[str, Any]]) -> None:
        self.expect(
            "autoscaling:DescribeAutoScalingGroups",
            {"AutoScalingGroups": groups},
            {"AutoScalingGroupNames": names},
        )


def tag(group: str, key: str) -> dict[str, str]:
    return {"ResourceId": group, "ResourceType": "auto-scaling-group", "Key": key}


def stack(name: str, status: str) -> dict[str, Any]:
    """Return a stack as CloudFormation describes it."""
    return {"StackName": name, "CreationTime": _BEFORE, "StackStatus": status}


def auto_scaling_group(name: str, size: int) -> dict[str, Any]:
    """Return an Auto Scaling group as EC2 Auto Scaling describes it."""
    return {
        "AutoScalingGroupName": name,
        "MinSize": 0,
        "MaxSize": 99,
        "DesiredCapacity": size,
        "DefaultCooldown": 300,
        "AvailabilityZones": ["us-west-2b"],
        "HealthCheckType": "EC2",
        "CreatedTime": _BEFORE,
    }
