"""AWS as the block calendar sees it: stubbed clients."""

from datetime import UTC, datetime
from functools import cache
from typing import Any

import boto3
from botocore.stub import Stubber

RESERVATION = "cr-0123456789abcdef0"
STARTS = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)
ENDS = datetime(2026, 12, 8, 11, 30, tzinfo=UTC)
SERVICES = ("ec2", "eks", "autoscaling", "cloudformation")


@cache
def make_client(service: str) -> Any:
    session: Any = boto3.Session(
        region_name="us-west-2",
        aws_access_key_id="AKIDEXAMPLE",
        aws_secret_access_key="secret",
    )
    return session.client(service)


class Aws:
    """Stubbed clients: any call that the test did not foresee is an error."""

    def __init__(self) -> None:
        self.clients = {service: make_client(service) for service in SERVICES}
        self._stubs = {service: Stubber(client) for service, client in self.clients.items()}
        for stub in self._stubs.values():
            stub.activate()

    def client(self, service: str) -> Any:
        return self.clients[service]

    def expect(self, service: str, operation: str, answer: Any, **request: Any) -> None:
        self._stubs[service].add_response(operation, answer, request)

    def refuse(self, service: str, operation: str, code: str) -> None:
        self._stubs[service].add_client_error(operation, code, "refused")

    def reservation(
        self, *states: str, starts: datetime = STARTS, ends: datetime = ENDS, **request: Any
    ) -> None:
        found = [
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
        answer = {"CapacityReservations": found}
        self.expect("ec2", "describe_capacity_reservations", answer, **asked)

    def node_group(self, size: int) -> None:
        """EKS knows the Auto Scaling group behind the node group, and a size of some time ago."""
        behind = {"autoScalingGroups": [{"name": "train-asg"}]}
        group = {
            "nodegroupName": "train",
            "resources": behind,
            "scalingConfig": {"desiredSize": 99},
        }
        self.expect(
            "eks",
            "describe_nodegroup",
            {"nodegroup": group},
            clusterName="research",
            nodegroupName="train",
        )
        self.auto_scaling_group(size)

    def set_node_group(self, size: int) -> None:
        self.expect(
            "eks",
            "update_nodegroup_config",
            {},
            clusterName="research",
            nodegroupName="train",
            scalingConfig={"desiredSize": size},
        )

    def set_auto_scaling_group(self, size: int) -> None:
        self.expect(
            "autoscaling",
            "set_desired_capacity",
            {},
            AutoScalingGroupName="train-asg",
            DesiredCapacity=size,
            HonorCooldown=False,
        )

    def auto_scaling_group(self, *sizes: int) -> None:
        groups = [
            {
                "AutoScalingGroupName": "train-asg",
                "MinSize": 0,
                "MaxSize": 16,
                "DesiredCapacity": size,
                "DefaultCooldown": 300,
                "AvailabilityZones": ["us-west-2b"],
                "HealthCheckType": "EC2",
                "CreatedTime": datetime(2026, 11, 1, tzinfo=UTC),
            }
            for size in sizes
        ]
        self.expect(
            "autoscaling",
            "describe_auto_scaling_groups",
            {"AutoScalingGroups": groups},
            AutoScalingGroupNames=["train-asg"],
        )

    def stack(self, status: str) -> None:
        stack = {"StackName": "stack", "CreationTime": STARTS, "StackStatus": status}
        self.expect("cloudformation", "describe_stacks", {"Stacks": [stack]}, StackName="stack")

    def verify(self) -> None:
        for stub in self._stubs.values():
            stub.deactivate()
            stub.assert_no_pending_responses()
