"""`hyperpod`: settings of SageMaker HyperPod."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from ultrascale.catalog import kubernetes
from ultrascale.config._base import Model, Section
from ultrascale.config._values import dns_label


class Team(Model):
    """A team that shares the HyperPod nodes with the others."""

    # `hyperpod-ns-` takes 12 of a namespace's 63 characters.
    name: Annotated[str, dns_label(51)]
    """Name of the team; its namespace is `hyperpod-ns-NAME`."""

    # Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ComputeQuotaTarget.html
    fair_share_weight: Annotated[int, Field(ge=0, le=100)]
    """Share of the nodes that no team states, and of idle ones."""

    lend: bool = False
    """Let other teams use what the team leaves idle."""

    # The API's pattern admits 0 to 10,000, its text 1 to 500.
    # Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ResourceSharingConfig.html
    borrow_limit_percent: Annotated[int, Field(ge=1, le=500)] | None = None
    """Most that the team borrows, in percent of its quota. Default: it never borrows."""

    nodes: Mapping[str, Annotated[int, Field(ge=0, le=kubernetes.NODES_PER_CLUSTER)]] = Field(
        default_factory=dict[str, int]
    )
    """Nodes that are the team's own, by name of the pool. Default: a share by weight."""


class TaskGovernance(Section):
    """HyperPod task governance: quotas, sharing and preemption between teams."""

    teams: Annotated[tuple[Team, ...], Field(json_schema_extra={"minItems": 1})]
    """Teams that share HyperPod's nodes."""


class HyperPod(Section):
    """Settings of the HyperPod cluster, for pools with ``provisioner: hyperpod``."""

    node_recovery: Literal["automatic", "none"] = "automatic"
    """`automatic`: HyperPod reboots and replaces faulty nodes."""

    training_operator: bool = False
    """Install HyperPod's training operator, which takes training jobs as `HyperPodPyTorchJob` in
    place of `PyTorchJob`. Their images need `hyperpod-elastic-agent`.
    """

    task_governance: TaskGovernance | None = None
    """Sharing of nodes between teams by quotas. Not beside Volcano, and only in Regions where
    CloudFormation has it.

    Default: none.
    """
