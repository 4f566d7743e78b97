"""AWS as the block calendar sees it: a reservation, a node group and its stack."""

from datetime import UTC, datetime
from typing import Any

from tests.support.fake_aws import FakeAws, Refusal
from tests.support.node_group_services import auto_scaling_group, stack
from ultrascale.lambdas.block_calendar.scheduled_end import ACTION

RESERVATION = "cr-0123456789abcdef0"
STARTS = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)
ENDS = datetime(2026, 12, 8, 11, 30, tzinfo=UTC)


class Aws(FakeAws):
    """Services in the order in which the test foresees their requests."""

    def refuse(self, action: str, code: str) -> None:
        self.expect(action, Refusal(code, "refused"))

    def reservation(
        self, *states: str, starts: datetime = STARTS, ends: datetime = ENDS, **request: Any
    ) -> None:
        blocks = [
            {
                "CapacityReservationId": f"cr-{number}",
                "ReservationType": "capacity-block",
                "State": state,
                "StartDate": starts,
                "EndDate": ends,
            }
            for number, state in enumerate(states)
        ]
        asked = request or {"CapacityReservationIds": [RESERVATION]}
        answer = {"CapacityReservations": blocks}
        self.expect("ec2:DescribeCapacityReservations", answer, asked)

    def node_group(self, size: int) -> None:
        """EKS knows the Auto Scaling group behind the node group, and a size of some time ago."""
        behind = {"autoScalingGroups": [{"name": "train-asg"}]}
        group = {
            "nodegroupName": "train",
            "resources": behind,
            "scalingConfig": {"desiredSize": 99},
        }
        asked = {"clusterName": "research", "nodegroupName": "train"}
        self.expect("eks:DescribeNodegroup", {"nodegroup": group}, asked)
        self.auto_scaling_group(size)

    def scheduled_end(self, at: datetime | None, *, cause: str) -> None:
        """EKS's scheduled action on the group, and the cause of the group's latest change."""
        behind = {"autoScalingGroups": [{"name": "train-asg"}]}
        group = {"nodegroupName": "train", "resources": behind}
        asked = {"clusterName": "research", "nodegroupName": "train"}
        self.expect("eks:DescribeNodegroup", {"nodegroup": group}, asked)
        action = {"ScheduledActionName": ACTION, "StartTime": at}
        self.expect(
            "autoscaling:DescribeScheduledActions",
            {"ScheduledUpdateGroupActions": [action] if at else []},
            {"AutoScalingGroupName": "train-asg"},
        )
        activity = {
            "ActivityId": "1",
            "AutoScalingGroupName": "train-asg",
            "Cause": cause,
            "StartTime": STARTS,
            "StatusCode": "Successful",
        }
        self.expect(
            "autoscaling:DescribeScalingActivities",
            {"Activities": [activity]},
            {"AutoScalingGroupName": "train-asg", "MaxRecords": 20},
        )

    def set_node_group(self, size: int) -> None:
        asked = {
            "clusterName": "research",
            "nodegroupName": "train",
            "scalingConfig": {"desiredSize": size},
        }
        self.expect("eks:UpdateNodegroupConfig", {}, asked)

    def set_auto_scaling_group(self, size: int) -> None:
        asked = {
            "AutoScalingGroupName": "train-asg",
            "DesiredCapacity": size,
            "HonorCooldown": False,
        }
        self.expect("autoscaling:SetDesiredCapacity", {}, asked)

    def auto_scaling_group(self, *sizes: int) -> None:
        self.expect(
            "autoscaling:DescribeAutoScalingGroups",
            {"AutoScalingGroups": [auto_scaling_group("train-asg", size) for size in sizes]},
            {"AutoScalingGroupNames": ["train-asg"]},
        )

    def stack(self, status: str) -> None:
        answer = {"Stacks": [stack("stack", status)]}
        self.expect("cloudformation:DescribeStacks", answer, {"StackName": "stack"})
