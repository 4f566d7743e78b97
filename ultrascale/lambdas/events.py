"""Types of the functions' events and log lines, only for the type check.

No function imports this module at run time.

Sources:
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-requests.html
    https://docs.aws.amazon.com/lambda/latest/dg/python-context.html
"""

from collections.abc import Mapping, Sequence
from typing import Generic, Literal, NotRequired, Protocol, TypedDict, TypeVar, final

Json = str | float | bool | None | Sequence["Json"] | Mapping[str, "Json"]
"""A value of a JSON document."""
LogEvent = Mapping[str, Json]
"""A log line in CloudWatch's embedded metric format."""

_Properties = TypeVar("_Properties")


@final
class Request(TypedDict, Generic[_Properties]):
    """A request of CloudFormation to a custom resource."""

    RequestType: Literal["Create", "Update", "Delete"]
    RequestId: str
    ResponseURL: str
    StackId: str
    ResourceType: str
    LogicalResourceId: str
    PhysicalResourceId: NotRequired[str]
    ResourceProperties: _Properties
    OldResourceProperties: NotRequired[_Properties]


class Context(Protocol):
    """The part of Lambda's context object that functions use."""

    aws_request_id: str
    invoked_function_arn: str

    def get_remaining_time_in_millis(self) -> int:
        """Return the milliseconds until Lambda ends the function."""
        ...


class BuildProperties(TypedDict):
    """Properties of a build."""

    ProjectName: str


class SubnetPart(TypedDict):
    """A subnet's range that is reserved for prefixes."""

    SubnetId: str
    Cidr: str


class SubnetReservationProperties(TypedDict):
    """Properties of a VPC's prefix reservations."""

    Parts: list[SubnetPart]


class LaunchedFrom(TypedDict):
    """Launch inputs of a pool's nodes: a change of an input would replace the nodes."""

    Provisioner: str


class NodeGroupProperties(TypedDict):
    """Properties of the custom resources of node groups; each resource has some of them.

    CloudFormation turns every number and truth value into text.
    """

    ClusterName: str
    NodegroupName: NotRequired[str]
    AutoScalingGroupName: NotRequired[str]
    Labels: NotRequired[Mapping[str, str]]
    Tags: NotRequired[Mapping[str, str]]
    MinSize: NotRequired[str]
    MaxSize: NotRequired[str]
    InitialSize: NotRequired[str]
    Guarded: NotRequired[str]
    SizedBy: NotRequired[str]
    LaunchedFrom: NotRequired[LaunchedFrom]


class CalendarWindow(TypedDict):
    """Window of a Capacity Block, in ISO 8601."""

    Starts: str
    UsableUntil: str
    ReclaimedFrom: str
    Ends: str


class Tag(TypedDict):
    """A tag of EC2."""

    Key: str
    Value: str


class CalendarReservation(TypedDict):
    """Id or tags of a Capacity Block's reservation."""

    Id: NotRequired[str]
    Tags: NotRequired[list[Tag]]


class CalendarTarget(TypedDict):
    """The node group or NodePool whose size the calendar sets."""

    Kind: str
    Name: str
    Cluster: NotRequired[str]


@final
class CalendarProperties(TypedDict):
    """Properties of an entry of the block calendar; the entry's schedule sends them too."""

    Pool: str
    Window: NotRequired[CalendarWindow]
    Size: str
    Reservation: CalendarReservation
    Target: CalendarTarget


class CanaryMetrics(TypedDict):
    """Names of the write canary's metrics."""

    Good: str
    Total: str
    Duration: str


class CanaryInput(TypedDict):
    """Input of the write canary's schedule."""

    Cluster: str
    Path: str
    ThresholdMilliseconds: int
    Seconds: float
    Namespace: str
    Metrics: CanaryMetrics


class CleanerInput(TypedDict):
    """Input of the schedule that deletes abandoned interfaces."""

    Cluster: str
    ClusterTag: str
    MadeTag: str
    LeastMinutes: int
    Most: int
