"""Provisioners: the five ways to launch the nodes of a pool, and the groups that work alike.

A class with a provisioner derives from `Provisioned` and uses its properties: no other module
compares names of provisioners.

Source: https://docs.aws.amazon.com/eks/latest/userguide/eks-compute.html
"""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Literal, get_args

from ultrascale.catalog.karpenter import REPAIR_DRAIN_MINUTES
from ultrascale.core.table import all_parts
from ultrascale.errors import CatalogError
from ultrascale.frozen import Frozen

Provisioner = Literal["managed-node-group", "self-managed", "karpenter", "auto-mode", "hyperpod"]

PROVISIONERS: tuple[Provisioner, ...] = get_args(Provisioner)
MANAGED_NODE_GROUP: Provisioner = "managed-node-group"
SELF_MANAGED: Provisioner = "self-managed"
KARPENTER: Provisioner = "karpenter"
AUTO_MODE: Provisioner = "auto-mode"
HYPERPOD: Provisioner = "hyperpod"

NODE_GROUPS: tuple[Provisioner, ...] = (MANAGED_NODE_GROUP, SELF_MANAGED)
"""Provisioners whose pools are EC2 Auto Scaling groups with launch templates."""

NODE_POOLS: tuple[Provisioner, ...] = (KARPENTER, AUTO_MODE)
"""Provisioners whose pools are NodePools of the API `karpenter.sh`; nodes come when pods wait."""


class ProvisionerFacts(Frozen):
    """Facts that all nodes of a provisioner share."""

    name: str  # Name of the controller that launches them, as its maker writes it
    word: str = ""  # Its name in sentences on groups of a fixed size
    # Whether they are instances of the account: EC2 shows them, counts them by its quotas, bills
    # their disks, and launches them into reservations. Else they are SageMaker's.
    in_account: bool = True
    type_prefix: str = ""  # Stands before the instance type in labels and in the price list
    # Whether they run the image that we pin, with our settings of the kubelet. EKS Auto Mode and
    # HyperPod have their own, with the device plugins, EFA's among them, inside or beside them.
    # Sources:
    #     https://docs.aws.amazon.com/eks/latest/userguide/auto-accelerated.html
    #     https://github.com/aws/eks-charts/pull/1359
    #     https://github.com/aws/sagemaker-hyperpod-cli/tree/main/helm_chart
    runs_pinned_image: bool = True
    # Whether device plugins and agents for accelerators come with them: ours keep off.
    brings_plugins: bool = False
    # Whether their number is that of the file: a deploy makes them all, and nothing scales them.
    is_fixed: bool = False
    nodes_per_group: int | None = None  # Most nodes of a group; None without such a limit
    types_per_group: int | None = None  # Most instance types of one; None: no limit of its own
    # Whether controllers on system nodes have to run before it launches any.
    needs_controllers: bool = False
    # Whether CloudFormation makes a group anew for other subnets.
    keeps_subnets: bool = False
    # Whether the taint `dedicated` stands in place of those of accelerators, and none at all where
    # nodes have deep health checks.
    is_dedicated: bool = False
    # Whether a node takes single IPv4 addresses: those of one interface for its pods, and one for
    # each further network card with EFA.
    has_single_addresses: bool = False
    # Whether a build in the VPC installs what runs on them.
    is_set_up_by_build: bool = False
    states_kernel: bool = True  # Whether a page states the kernel of their image
    sets_huge_pages_aside: bool = True  # Whether a page says that their image does
    are_shared: bool = False  # Whether teams share them by quotas
    # Whether their jobs get claims of the file's storage unless the file says otherwise.
    have_claims: bool = False
    labels: Mapping[str, str] = {}  # Labels that the provisioner itself sets
    # Label and value of nodes that are well; None: it labels none.
    well: tuple[str, str] | None = None
    # Label and value of nodes that have passed deep health checks; None: it labels none.
    passed: tuple[str, str] | None = None
    window: Literal["Capacity Block", "training plan"] = "Capacity Block"  # How time is bought
    repairs: str = ""  # Its answer to a broken node; empty: none
    keeps_slots: str = ""  # Fate of a reserved slot then; empty: that of the action
    renewed_by: str = ""  # Program that renews them; empty: one of ours, or the group itself
    upgraded_by: str = ""  # Way to a new image after an upgrade; empty: the deploy itself
    resized_by: str = ""  # Way to another number of them; empty: `ultrascale scale`

    @property
    def seller(self) -> Literal["ec2", "sagemaker"]:
        """Service that sells the nodes."""
        return "ec2" if self.in_account else "sagemaker"


_CORE: Mapping[Provisioner, ProvisionerFacts] = {
    MANAGED_NODE_GROUP: ProvisionerFacts(
        name="EKS", repairs="EKS reboots or replaces it, by the fault", keeps_subnets=True
    ),
    SELF_MANAGED: ProvisionerFacts(name="EC2 Auto Scaling"),
    KARPENTER: ProvisionerFacts(
        name="Karpenter",
        needs_controllers=True,
        repairs="a successor starts first; then its pods get {} to {} minutes".format(
            *REPAIR_DRAIN_MINUTES
        ),
    ),
    AUTO_MODE: ProvisionerFacts(
        name="EKS Auto Mode",
        runs_pinned_image=False,
        repairs="EKS replaces it, whatever budgets say",
    ),
}


@cache
def installed_provisioners() -> Mapping[Provisioner, ProvisionerFacts]:
    """Return the facts of every installed provisioner, of the core or of a part."""
    rows = (_CORE, *(part.provisioners for part in all_parts()))
    return {name: facts for row in rows for name, facts in row.items()}


def facts_of(provisioner: Provisioner) -> ProvisionerFacts:
    """Return the facts of a provisioner, of the core or of a part.

    Raises:
        CatalogError: The part that brings the provisioner is not installed.
    """
    facts = installed_provisioners().get(provisioner)
    if facts is None:
        raise CatalogError(f"no part of this installation has provisioner {provisioner}")
    return facts


class Provisioned:
    """A pool, existing or proposed, with the provisioner that launches its nodes."""

    __slots__ = ()

    if TYPE_CHECKING:
        provisioner: Provisioner

    @property
    def is_managed(self) -> bool:
        """Whether the nodes are in an EKS managed node group."""
        return self.provisioner == MANAGED_NODE_GROUP

    @property
    def is_self_managed(self) -> bool:
        """Whether the nodes are in an Auto Scaling group of ours."""
        return self.provisioner == SELF_MANAGED

    @property
    def is_node_group(self) -> bool:
        """Whether the nodes are in an Auto Scaling group, EKS's or ours."""
        return self.provisioner in NODE_GROUPS

    @property
    def is_karpenter(self) -> bool:
        """Whether the cluster's own Karpenter launches the nodes."""
        return self.provisioner == KARPENTER

    @property
    def is_auto_mode(self) -> bool:
        """Whether EKS Auto Mode launches the nodes."""
        return self.provisioner == AUTO_MODE

    @property
    def is_node_pool(self) -> bool:
        """Whether the nodes are launched from a NodePool."""
        return self.provisioner in NODE_POOLS

    @property
    def facts(self) -> ProvisionerFacts:
        """Facts that all nodes of the provisioner share."""
        return facts_of(self.provisioner)

    @property
    def is_hyperpod(self) -> bool:
        """Whether SageMaker HyperPod launches the nodes."""
        return self.provisioner == HYPERPOD
