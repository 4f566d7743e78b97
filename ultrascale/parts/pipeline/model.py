"""The pipeline that deploys clusters, its builds, and the names of its roles."""

from collections.abc import Mapping, Sequence

from ultrascale.config import Release
from ultrascale.frozen import Frozen
from ultrascale.parts.pipeline.section import ConnectionId, package_words
from ultrascale.plan.model import (
    AppPlan,
    AppStagePlan,
    Decision,
    EventPlan,
    PlannedPart,
    WindowPlan,
)

OWN_STACK, GATE_STACK = "pipeline", "pipeline-gate"
"""Names of its stacks behind the cluster's: its own, and the gate in a cluster's account."""

APPROVAL_PREFIX = "Approve-"
"""Begins the names of approvals, followed by the name of the stage."""


class Plan(PlannedPart):
    """The pipeline, as the plan of the cluster whose file has it knows it."""

    home: ConnectionId  # Its account and Region
    release: Release  # The release of this product that its builds install

    @property
    def decisions(self) -> Sequence[Decision]:
        """The release that its builds install."""
        reason = "pipeline.package, or else the version that synthesizes"
        return (
            Decision(subjects=("pipeline",), choice=package_words(self.release), reason=reason),
        )


class StagePlan(AppStagePlan):
    """One cluster that a pipeline deploys."""

    account: str  # Account that it is deployed into
    approval: bool  # Whether a person has to approve it
    replace: tuple[str, ...]  # Protected resources that a deployment may replace or delete
    # Stacks that are deployed side by side after all others, as they fail where EC2 has no nodes.
    may_lack_capacity: tuple[str, ...]
    # Stacks with a stage of their own at the end, as they fail without nodes.
    on_nodes: tuple[str, ...]
    # Windows in which those can have nodes; empty: at any time.
    node_windows: tuple[WindowPlan, ...]

    @property
    def nodes_stage(self) -> str:
        """Name of the stage of `on_nodes`; no name in a file has a dot."""
        return f"{self.name}.on-nodes"

    @property
    def gate_role(self) -> str:
        """Name of the role, in its account, by which the pipeline looks before it deploys."""
        return f"{self.cluster.name}-gate-{self.cluster.region}"

    @property
    def gate_role_arn(self) -> str:
        """ARN of the role by which the pipeline looks before it deploys."""
        return f"arn:{self.cluster.partition}:iam::{self.account}:role/{self.gate_role}"


class WavePlan(Frozen):
    """Stages that are deployed side by side."""

    name: str  # What the pipeline calls them together
    stages: tuple[StagePlan, ...]  # The stages, at least one


class BuildsPlan(Frozen):
    """The commands of a pipeline's builds, and their files beside the repository."""

    version: str  # Version of this product that they run
    synth: tuple[str, ...]  # Write the assembly of the pipeline to ``cdk.out``
    tests: tuple[str, ...]  # Test the product itself; none where the repository is not its own
    rules: tuple[str, ...]  # Hold the templates of each stage to rules
    facts: tuple[str, ...]  # Fail where facts that a stage rests on expire soon
    # Make ready to look at a stage, by its name: install, and synthesize its cluster.
    looks: Mapping[str, tuple[str, ...]]
    program: str  # The command line of the product
    # ``BUCKET/KEY`` of the wheel that they install; None where it is in no bucket.
    bucket_object: str | None


class PipelinePlan(AppPlan):
    """The pipeline that deploys clusters from a repository."""

    cluster: str  # Name of the cluster whose file has it
    connection: str  # ARN of the CodeConnections connection to the repository's host
    repository: str  # OWNER/NAME
    branch: str  # Branch whose commits are deployed
    permissions_boundary: str | None  # Name of the IAM policy that bounds every role of its stack
    waves: tuple[WavePlan, ...]  # What it deploys, in this order
    log_retention_days: int  # How long the logs of builds are kept, in days
    builds: BuildsPlan  # Their commands
    cdk_variables: Mapping[str, str]  # Variables in which each build runs the CDK CLI
    cdk_version: str  # Version of the CDK's command line
    email: str | None  # Receiver of its notices; None without one
    events: tuple[EventPlan, ...]  # Events that it gets

    @property
    def stages(self) -> tuple[StagePlan, ...]:
        """Every stage, in the order of deployment."""
        return tuple(stage for wave in self.waves for stage in wave.stages)

    @property
    def role(self) -> str:
        """Name of the role of the builds that look; IAM is global, so the Region is part of it."""
        return f"{self.cluster}-pipeline-{self.region}"

    @property
    def role_arn(self) -> str:
        """ARN of the role of the builds that look before a stage is deployed."""
        return f"arn:{self.partition}:iam::{self.account}:role/{self.role}"
