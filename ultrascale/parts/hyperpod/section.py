"""`hyperpod`: settings of SageMaker HyperPod."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field

from ultrascale import config
from ultrascale.catalog import kubernetes


class Team(config.Team):
    """A team that shares the HyperPod nodes with the others."""

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


class TaskGovernance(config.Teams):
    """HyperPod task governance: quotas, sharing and preemption between teams."""

    teams: Annotated[tuple[Team, ...], Field(json_schema_extra={"minItems": 1})]
    """Teams that share HyperPod's nodes."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the teams, in the order of the file."""
        return tuple(team.name for team in self.teams)


class HyperPod(config.Section):
    """Settings of the HyperPod cluster, for pools with ``provisioner: hyperpod``."""

    node_recovery: Literal["automatic", "none"] = "automatic"
    """`automatic`: HyperPod reboots and replaces faulty nodes."""

    mount_file_systems: bool = False
    """Mount file systems on each instance as well, at `/fsx/NAME`. Jobs mount claims without it,
    and AWS shows it for Slurm alone. A change may replace instances.
    """

    least_privilege: bool = False
    """Hold the role of nodes to the cluster and its VPC. AWS documents a wider role, and nodes were
    not seen to join with this one: try it before capacity is paid for.
    """

    training_operator: bool = False
    """Install HyperPod's training operator, which takes training jobs as `HyperPodPyTorchJob` in
    place of `PyTorchJob`. Their images need `hyperpod-elastic-agent`.
    """

    task_governance: TaskGovernance | None = None
    """Sharing of nodes between teams by quotas. Not beside Volcano, and only in Regions where
    CloudFormation has it.

    Default: none.
    """


class FileKeys(config.Section):
    """The keys of HyperPod."""

    hyperpod: HyperPod = Field(default_factory=HyperPod)
    """SageMaker HyperPod, for pools with `provisioner: hyperpod`."""


def settings_of(cluster: config.Cluster) -> HyperPod:
    """Return the settings of HyperPod."""
    section = cluster.section(HyperPod)
    assert section is not None, "the section has a default"
    return section
