"""`hyperpod`: SageMaker HyperPod's own settings."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from ultrascale.config._base import Model, Section, dns_label


class Team(Model):
    """A team that shares the HyperPod nodes with the others.

    Attributes:
        name: Its namespace is ``hyperpod-ns-NAME``.
        fair_share_weight: Share of idle capacity relative to the other teams.
        lend: Whether others may use what the team leaves idle.
        borrow_limit_percent: How far the team may go beyond its quota; None: it never borrows.
        nodes: Nodes that are the team's own, by name of the pool. Of a pool that it does not name
            it gets a share by weight.
    """

    # `hyperpod-ns-` takes 12 of a namespace's 63 characters.
    name: Annotated[str, dns_label(51)]
    # Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ComputeQuotaTarget.html
    fair_share_weight: Annotated[int, Field(ge=0, le=100)]
    lend: bool = False
    # The API's pattern admits 0 to 10,000, its text 1 to 500.
    # Source: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ResourceSharingConfig.html
    borrow_limit_percent: Annotated[int, Field(ge=1, le=500)] | None = None
    nodes: Mapping[str, Annotated[int, Field(ge=0)]] = Field(default_factory=dict[str, int])


class TaskGovernance(Section):
    """HyperPod task governance: quotas, sharing and preemption between teams."""

    teams: Annotated[tuple[Team, ...], Field(json_schema_extra={"minItems": 1})]


class HyperPod(Section):
    """Settings of the HyperPod cluster, for pools with ``provisioner: hyperpod``.

    Attributes:
        node_recovery: Whether HyperPod reboots and replaces faulty nodes by itself.
        task_governance: Sharing between teams; None leaves it out.
    """

    node_recovery: Literal["automatic", "none"] = "automatic"
    task_governance: TaskGovernance | None = None
