"""Configurations that failed in the field, with their users' reports.

The corpus in `tests/data/known_bad` has the same numbers.
"""

from collections.abc import Mapping
from types import MappingProxyType

from ultrascale.catalog import auto_mode
from ultrascale.frozen import Frozen


class FieldFailure(Frozen):
    """A failure that users of clusters have reported."""

    number: str  # Its number
    what: str  # What goes wrong
    url: str  # The public thread or page about it


_KARPENTER = "https://github.com/aws/karpenter-provider-aws"
_ROADMAP = "https://github.com/aws/containers-roadmap"
_EC2_GUIDE = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide"
_EKS_GUIDE = "https://docs.aws.amazon.com/eks/latest/userguide"

# The thread or page, and the failure.
_THREADS: Mapping[str, tuple[str, str]] = {
    "K04": (
        f"{_EC2_GUIDE}/capacity-blocks-how.html",
        "EC2 takes the instances of a block back before its end",
    ),
    "K06": (
        f"{_EKS_GUIDE}/ml-eks-nvidia-ultraserver.html",
        "neither Karpenter nor EKS Auto Mode launches P6e-GB200",
    ),
    "K07": (f"{_EKS_GUIDE}/capacity-blocks-mng.html", "an update of a block's group needs size 0"),
    "K08": (
        f"{_EKS_GUIDE}/capacity-blocks.html",
        "a self-managed group that starts before its block, or ends with it",
    ),
    "K09": (f"{_EKS_GUIDE}/managed-node-groups.html", "a managed node group of at most 0 nodes"),
    "K14": (
        "https://karpenter.sh/docs/tasks/odcrs/",
        "a Capacity Block and On-Demand do not mix in one launch",
    ),
    "K15": (
        "https://karpenter.sh/docs/tasks/odcrs/",
        "nodes outlive their reservation and run on at the On-Demand price",
    ),
    "K16": (f"{_KARPENTER}/issues/9001", "static replicas do not follow the window of a block"),
    "K17": (f"{_KARPENTER}/issues/8514", "several Capacity Blocks behind one selector"),
    "K19": (f"{_KARPENTER}/issues/8873", "drift waits for ever in a pool without a spare node"),
    "K20": ("https://github.com/METR/hawk/pull/93", "reserved nodes are consolidated, and lost"),
    "K28": (f"{_ROADMAP}/issues/2204", "a group of a scarce type fails when it is made"),
    "K29": (f"{_ROADMAP}/issues/1943", "managed node groups have no schedule"),
    "K34": (
        "https://github.com/eksctl-io/eksctl/issues/7949",
        "a reservation does not fill a placement group that it was not made in",
    ),
    "K84": (
        "https://github.com/pytorch/ci-infra/pull/495",
        "a reservation that is gone is skipped without a word",
    ),
    "K85": (
        "https://github.com/eksctl-io/eksctl/issues/8542",
        "a launch template that lost its reservation",
    ),
    "K94": (
        f"{_EC2_GUIDE}/capacity-blocks-using.html",
        "a Capacity Block together with a placement group",
    ),
    "K95": (
        f"{_EKS_GUIDE}/capacity-blocks-mng.html",
        "a block's node group with a second zone, or with a second block",
    ),
    "K96": (
        f"{_EC2_GUIDE}/capacity-blocks-purchase.html",
        "a size or length that Capacity Blocks do not have",
    ),
    "K98": (
        "https://docs.aws.amazon.com/eks/latest/APIReference/API_NodegroupUpdateConfig.html",
        "an update that launches the new node first finds no capacity for it",
    ),
    "K100": (
        f"{_EC2_GUIDE}/capacity-reservation-overview.html",
        "a full reservation spills to On-Demand without a word",
    ),
    "K101": (
        f"{_EKS_GUIDE}/auto-odcr.html",
        "one selector ends the open matching of reservations in the whole cluster",
    ),
    "K103": (
        f"{_EC2_GUIDE}/spot-best-practices.html",
        "Spot takes one node, and the job that spans it stops on all",
    ),
    "K104": (
        f"{_EKS_GUIDE}/automode-learn-instances.html",
        f"Auto Mode replaces a node after {auto_mode.NODE_DAYS} days, whatever runs there",
    ),
    "K106": (
        f"{_EKS_GUIDE}/service-quotas.html",
        "more nodes or groups than EKS allows managed node groups",
    ),
}

FIELD_FAILURES: Mapping[str, FieldFailure] = MappingProxyType(
    {
        number: FieldFailure(number=number, what=what, url=url)
        for number, (url, what) in _THREADS.items()
    }
)
"""The failures that the pool matrix refers to, by number."""
