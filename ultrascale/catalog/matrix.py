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
from ultrascale.catalog.tables import Row, read_rows
from ultrascale.frozen import Frozen


class _Row(Row, frozen=True, kw_only=True):
    """A row of `purchase_matrix.csv`: texts of a cell, numbers of its failures in the field."""

    provisioner: Provisioner
    option: str
    rendered: str = ""
    first_node: str = ""
    last_node: str = ""
    refused: str = ""
    source: str = ""
    failure_numbers: tuple[str, ...] = ()


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
    rows = {(row.provisioner, row.option): row for row in read_rows("purchase_matrix.csv", _Row)}
    for provisioner in PROVISIONERS:
        for option in PURCHASE_OPTIONS:
            yield _matrix_cell(provisioner, option, rows[provisioner, option])


def _matrix_cell(provisioner: Provisioner, option: PurchaseOption, row: _Row) -> Cell:
    if row.refused:
        return Cell(
            provisioner=provisioner,
            option=option,
            refused=row.refused,
            source=row.source,
            instead=_INSTEAD[provisioner, option],
        )
    return Cell(
        provisioner=provisioner,
        option=option,
        rendered=row.rendered,
        first_node=row.first_node,
        last_node=row.last_node,
        names_reservation_by=_reservation_keys(provisioner, option),
        spills=option == "odcr" and provisioner in NODE_GROUPS,
        falls_back=option == "spot" and provisioner in NODE_POOLS,
        fewest_types=(FEWEST_SPOT_TYPES if option == "spot" and provisioner in NODE_GROUPS else 1),
        failures=tuple(FIELD_FAILURES[number] for number in row.failure_numbers),
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
