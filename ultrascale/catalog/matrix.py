"""The pool matrix: the purchase options that work on each provisioner, and their limits.

`ultrascale matrix` prints the matrix, the cluster file's rules read it, `docs/pool-matrix.md` shows
it.

Sources:
    https://docs.aws.amazon.com/eks/latest/userguide/capacity-blocks.html
    https://docs.aws.amazon.com/eks/latest/userguide/auto-odcr.html
    https://karpenter.sh/docs/tasks/odcrs/
    https://docs.aws.amazon.com/autoscaling/ec2/userguide/launch-template-capacity-blocks.html
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Literal, get_args

from ultrascale.catalog import auto_mode
from ultrascale.catalog.field_failures import FIELD_FAILURES, FieldFailure
from ultrascale.catalog.instance_types import INSTANCE_TYPES, InstanceType
from ultrascale.catalog.provisioners import (
    AUTO_MODE,
    HYPERPOD,
    KARPENTER,
    NODE_GROUPS,
    NODE_POOLS,
    PROVISIONERS,
    Provisioner,
)
from ultrascale.frozen import Frozen

# --- Texts of the cells of the pool matrix, as `ultrascale matrix` prints them --------------------


_AGE = f"{auto_mode.NODE_DAYS} days"

# For each cell: the objects that a pool becomes, how its first node comes, how its last node goes.
WORKS: Mapping[tuple[str, str], tuple[str, str, str]] = {
    ("managed-node-group", "on-demand"): (
        "node group of capacity type `ON_DEMAND`",
        "EKS, as the group is made: `min` or `static` nodes. "
        "More come from the Cluster Autoscaler when a pod is pending",
        "the Cluster Autoscaler takes an idle node, down to `min`",
    ),
    ("managed-node-group", "spot"): (
        "node group of capacity type `SPOT`",
        "as On-Demand; Auto Scaling picks the type with the most spare capacity",
        "EC2 takes it with two minutes' notice, and EKS drains it; idle, as On-Demand",
    ),
    ("managed-node-group", "odcr"): (
        "node group of capacity type `ON_DEMAND` whose launch template targets the reservation",
        "EKS, as the group is made, at its maximum: the reservation is paid for anyway",
        "when the file says fewer, or the pool is removed",
    ),
    ("managed-node-group", "capacity-block"): (
        "node group of capacity type `CAPACITY_BLOCK` in the block's zone, size 0 when it is made",
        "the calendar, at the block's start, or at the next deploy within its window",
        "EKS's own scheduled action, 40 minutes before the end",
    ),
    ("self-managed", "on-demand"): (
        "Auto Scaling group and launch template",
        "Auto Scaling, as the group is made: `min` or `static` nodes. "
        "More come from the Cluster Autoscaler when a pod is pending",
        "the Cluster Autoscaler takes an idle node, down to `min`",
    ),
    ("self-managed", "spot"): (
        "Auto Scaling group of mixed instance types with capacity rebalancing",
        "as On-Demand; Auto Scaling picks the type with the most spare capacity",
        "EC2 takes it with two minutes' notice; the Node Termination Handler drains it",
    ),
    ("self-managed", "odcr"): (
        "Auto Scaling group whose launch template targets the reservation",
        "Auto Scaling, as the group is made, at its maximum: the reservation is paid for anyway",
        "when the file says fewer, or the pool is removed",
    ),
    ("self-managed", "capacity-block"): (
        "Auto Scaling group in the block's zone, size 0 when it is made",
        "the calendar, at the block's start, or at the next deploy within its window",
        "the calendar, 40 minutes before the end (UltraServers: 70); "
        "the Node Termination Handler drains it",
    ),
    ("karpenter", "on-demand"): (
        "NodePool and EC2NodeClass, capacity type `on-demand`",
        "Karpenter, when a pod is pending; a `static` pool at once",
        "Karpenter, once it is idle; a `static` or reserved pool keeps it",
    ),
    ("karpenter", "spot"): (
        "NodePool of capacity type `spot`; with `fallback` a second one of lower weight for "
        "On-Demand; they divide the nodes between them",
        "Karpenter, when a pod is pending",
        "EC2 takes it with two minutes' notice, which Karpenter learns of from its queue; "
        "idle, Karpenter takes it",
    ),
    ("karpenter", "odcr"): (
        "NodePool of capacity type `reserved`; the EC2NodeClass selects the reservation",
        "Karpenter, when a pod is pending; a `static` pool at once",
        "it is kept, idle or not, until it or its pool is removed; of a `static` pool when the "
        "file says fewer. When the reservation ends it runs on at the On-Demand price",
    ),
    ("karpenter", "capacity-block"): (
        "NodePool of capacity type `reserved`; the EC2NodeClass selects the block",
        "Karpenter, when a pod is pending within the window; of a `static` pool the calendar, "
        "once the block is active",
        "Karpenter drains it 40 minutes before the end (UltraServers: 70)",
    ),
    ("auto-mode", "on-demand"): (
        "NodePool and NodeClass, capacity type `on-demand`",
        "EKS, when a pod is pending; a `static` pool at once",
        f"EKS, once it is idle, and after {_AGE} at most; a `static` or reserved pool replaces it",
    ),
    ("auto-mode", "spot"): (
        "NodePool of capacity type `spot`; with `fallback` a second one of lower weight for "
        "On-Demand; they divide the nodes between them",
        "EKS, when a pod is pending",
        "EC2 takes it with two minutes' notice, and EKS drains it; idle, EKS takes it",
    ),
    ("auto-mode", "odcr"): (
        "NodePool of capacity type `reserved`; the NodeClass selects the reservation",
        "EKS, when a pod is pending; a `static` pool at once",
        f"it is kept, idle or not, and replaced after {_AGE}; of a `static` pool when the file "
        "says fewer",
    ),
    ("auto-mode", "capacity-block"): (
        "NodePool of capacity type `reserved`; the NodeClass selects the block",
        "EKS, when a pod is pending within the window; of a `static` pool the calendar, "
        "once the block is active",
        f"EKS drains it 40 minutes before the end; in a longer window it is replaced after {_AGE}",
    ),
    ("hyperpod", "on-demand"): (
        "HyperPod instance group",
        "SageMaker, as the group is made",
        "when the file says fewer, or the pool is removed",
    ),
    ("hyperpod", "training-plan"): (
        "HyperPod instance group that names the training plan",
        "SageMaker, once the plan is active",
        "SageMaker stops it before the plan's end",
    ),
}

_SAGEMAKER = "https://docs.aws.amazon.com/sagemaker/latest"
_PLANS = (
    "a training plan reserves instances of SageMaker, not of EC2",
    f"{_SAGEMAKER}/APIReference/API_TrainingPlanOffering.html",
)
_RESERVATIONS = (
    "a HyperPod instance group may name a training plan, but no EC2 reservation",
    f"{_SAGEMAKER}/APIReference/API_ClusterInstanceGroupSpecification.html",
)
# For each cell that does not work: the reason, and the page with it.
REFUSED: Mapping[tuple[str, str], tuple[str, str]] = {
    ("managed-node-group", "training-plan"): _PLANS,
    ("self-managed", "training-plan"): _PLANS,
    ("karpenter", "training-plan"): _PLANS,
    ("auto-mode", "training-plan"): _PLANS,
    ("hyperpod", "spot"): (
        "AWS's pages disagree on how HyperPod's Spot groups scale, so they are left out",
        f"{_SAGEMAKER}/dg/sagemaker-hyperpod-eks-autoscaling.html",
    ),
    ("hyperpod", "odcr"): _RESERVATIONS,
    ("hyperpod", "capacity-block"): _RESERVATIONS,
}

_BLOCK = ("K04", "K94", "K96")
FAILURES: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("managed-node-group", "on-demand"): ("K09", "K28", "K98", "K106"),
    ("managed-node-group", "odcr"): ("K34", "K85", "K98", "K100"),
    ("managed-node-group", "capacity-block"): (*_BLOCK, "K07", "K29", "K95"),
    ("self-managed", "odcr"): ("K34", "K85", "K100"),
    ("self-managed", "capacity-block"): (*_BLOCK, "K08", "K85"),
    ("karpenter", "on-demand"): ("K06",),
    ("karpenter", "spot"): ("K103",),
    ("karpenter", "odcr"): ("K15", "K19", "K20", "K34", "K84"),
    ("karpenter", "capacity-block"): (*_BLOCK, "K06", "K14", "K16", "K17"),
    ("auto-mode", "on-demand"): ("K06", "K104"),
    ("auto-mode", "spot"): ("K103",),
    ("auto-mode", "odcr"): ("K20", "K34", "K84", "K101"),
    ("auto-mode", "capacity-block"): (*_BLOCK, "K06", "K16", "K17", "K101", "K104"),
}


# --- The pool matrix: the purchase options that work on each provisioner, and their limits --------


PurchaseOption = Literal["on-demand", "spot", "odcr", "capacity-block", "training-plan"]
ReservationKey = Literal["reservation", "reservation_tags", "resource_group"]

PURCHASE_OPTIONS: tuple[PurchaseOption, ...] = get_args(PurchaseOption)
RESERVATION_KEYS: tuple[ReservationKey, ...] = get_args(ReservationKey)

# EC2 and EKS advise several types without a number; two types of one size often run short together.
FEWEST_SPOT_TYPES = 3

# Quotas L-BD136A63 and L-6D54EA21, before AWS raises them.
# Source: https://docs.aws.amazon.com/eks/latest/userguide/service-quotas.html
NODES_PER_MANAGED_NODE_GROUP = 450
MANAGED_NODE_GROUPS = 30
# Of EKS and of SageMaker HyperPod.
# Sources: https://docs.aws.amazon.com/eks/latest/userguide/node-taints-managed-node-groups.html
# and https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ClusterKubernetesConfig.html
TAINTS_PER_GROUP = 50
# Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateNodegroup.html
TYPES_PER_MANAGED_NODE_GROUP = 20
# Most characters of keys of labels and taints, with domain, and of values, which labels must have.
# Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_Taint.html
GROUP_KEY_CHARACTERS = 63
# Source: https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-mixed-instances-groups.html
TYPES_PER_AUTO_SCALING_GROUP = 40

# Facts that the plan of a node needs: addresses, disks, the AMI.
_NODE_FACTS = (
    *("vcpus", "memory_mib", "ami_type", "nvme_total_gb", "efa_cards"),
    *("enis_card0", "ipv4_per_eni", "prefix_delegation"),
)


class Cell(Frozen):
    """Support of one purchase option by one provisioner."""

    provisioner: Provisioner  # Provisioner of the nodes
    option: PurchaseOption  # Purchase option of the nodes
    # Objects that the pool becomes; empty where the cell is refused, like the next two fields.
    rendered: str = ""
    first_node: str = ""  # How its first node comes to exist: who asks for it, and when
    last_node: str = ""  # How its last node goes
    refused: str = ""  # Reason why it is refused; empty where it works
    source: str = ""  # Page with that reason
    # The nearest cells that work, where this one is refused.
    instead: tuple[tuple[Provisioner, PurchaseOption], ...] = ()
    names_reservation_by: tuple[ReservationKey, ...] = ()  # Keys that may name its reservation
    spills: bool = False  # Whether it can launch On-Demand instances once its reservation is full
    falls_back: bool = False  # Whether it can launch On-Demand instances where Spot is short
    fewest_types: int = 1  # Fewest instance types of such a pool
    # Known failures in the field of such pools: they are refused, warned of or impossible here.
    failures: tuple[FieldFailure, ...] = ()

    @property
    def works(self) -> bool:
        """Whether a pool with this provisioner and purchase option is allowed."""
        return not self.refused


def cell(provisioner: Provisioner, option: PurchaseOption) -> Cell:
    """Return the cell of ``provisioner`` and ``option``."""
    return MATRIX[provisioner, option]


def options_of(provisioner: Provisioner) -> tuple[PurchaseOption, ...]:
    """Return the purchase options that work on ``provisioner``."""
    return tuple(option for option in PURCHASE_OPTIONS if cell(provisioner, option).works)


def can_be_planned(spec: InstanceType) -> bool:
    """Return whether the catalog has all facts to plan a node of type ``spec``."""
    if spec.accelerator is not None and not spec.accelerator.knows("count"):
        return False
    return all(spec.knows(name) for name in _NODE_FACTS)


def ultraserver_types() -> Iterator[InstanceType]:
    """Yield the instance types that UltraServers contain."""
    for spec in INSTANCE_TYPES.values():
        if spec.knows("ultraserver") and spec.ultraserver:
            yield spec


def why_not_launched(provisioner: Provisioner, spec: InstanceType) -> str | None:
    """Return why ``provisioner`` does not launch a type; None if it does."""
    if provisioner in NODE_POOLS and spec.knows("karpenter") and not spec.karpenter:
        return f"{provisioner} launches no {spec.family} instances"
    if provisioner == AUTO_MODE and spec.accelerator is not None and not spec.auto_mode:
        return f"{spec.family} is not among the accelerated families of EKS Auto Mode"
    return None


def _cells() -> Iterator[Cell]:
    for provisioner in PROVISIONERS:
        for option in PURCHASE_OPTIONS:
            yield _matrix_cell(provisioner, option)


def _matrix_cell(provisioner: Provisioner, option: PurchaseOption) -> Cell:
    failures = tuple(FIELD_FAILURES[n] for n in FAILURES.get((provisioner, option), ()))
    if (provisioner, option) in REFUSED:
        refused, source = REFUSED[provisioner, option]
        return Cell(
            provisioner=provisioner,
            option=option,
            refused=refused,
            source=source,
            instead=_INSTEAD[provisioner, option],
        )
    rendered, first_node, last_node = WORKS[provisioner, option]
    return Cell(
        provisioner=provisioner,
        option=option,
        rendered=rendered,
        first_node=first_node,
        last_node=last_node,
        names_reservation_by=_reservation_keys(provisioner, option),
        spills=option == "odcr" and provisioner in NODE_GROUPS,
        falls_back=option == "spot" and provisioner in NODE_POOLS,
        fewest_types=(FEWEST_SPOT_TYPES if option == "spot" and provisioner in NODE_GROUPS else 1),
        failures=failures,
    )


def _reservation_keys(
    provisioner: Provisioner, option: PurchaseOption
) -> tuple[ReservationKey, ...]:
    """Return the keys by which a pool of the cell may name its reservation.

    A launch template targets an id or a resource group, and a Capacity Block only by its id; a node
    class selects by id or tags.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CapacityReservationTarget.html
    """
    if option not in ("odcr", "capacity-block"):
        return ()
    if provisioner in NODE_POOLS:
        return ("reservation", "reservation_tags")
    return ("reservation", "resource_group") if option == "odcr" else ("reservation",)


_INSTEAD: Mapping[
    tuple[Provisioner, PurchaseOption], tuple[tuple[Provisioner, PurchaseOption], ...]
] = {
    **{
        (provisioner, "training-plan"): (
            (provisioner, "capacity-block"),
            (HYPERPOD, "training-plan"),
        )
        for provisioner in PROVISIONERS
        if provisioner != HYPERPOD
    },
    (HYPERPOD, "spot"): ((KARPENTER, "spot"),),
    (HYPERPOD, "odcr"): ((HYPERPOD, "training-plan"), (KARPENTER, "odcr")),
    (HYPERPOD, "capacity-block"): (
        (HYPERPOD, "training-plan"),
        (KARPENTER, "capacity-block"),
    ),
}

MATRIX: Mapping[tuple[Provisioner, PurchaseOption], Cell] = MappingProxyType(
    {(each.provisioner, each.option): each for each in _cells()}
)
"""Every cell."""
