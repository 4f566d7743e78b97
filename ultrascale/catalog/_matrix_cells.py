"""Texts of the cells of the pool matrix, as `ultrascale matrix` prints them."""

from collections.abc import Mapping

from ultrascale.catalog import auto_mode

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
