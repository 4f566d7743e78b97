"""The pipeline that deploys clusters."""

from collections.abc import Mapping

from ultrascale.catalog.build_environment import BuildEnvironment
from ultrascale.frozen import Frozen
from ultrascale.plan.model.cluster import ClusterPlan
from ultrascale.plan.model.metrics import EventPlan
from ultrascale.plan.model.pool import WindowPlan


class StagePlan(Frozen):
    """One cluster that a pipeline deploys."""

    name: str  # What the pipeline calls it
    file: str  # Its cluster file, from the repository's folder
    account: str  # Account that it is deployed into
    cluster: ClusterPlan  # The cluster
    approval: bool  # Whether somebody has to approve it
    replace: tuple[str, ...]  # Protected resources that a deployment may replace or delete
    # Name of the role, in its account, by which the pipeline looks before it deploys.
    gate_role: str
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
    def gate_role_arn(self) -> str:
        """ARN of the role by which the pipeline looks before it deploys."""
        return f"arn:{self.cluster.partition}:iam::{self.account}:role/{self.gate_role}"


class WavePlan(Frozen):
    """Stages that are deployed side by side."""

    name: str  # What the pipeline calls them together
    stages: tuple[StagePlan, ...]  # The stages, at least one


class BuildsPlan(Frozen):
    """The commands of the builds of a pipeline, and what they read beside the repository."""

    version: str  # Version of this product that they run
    synth: tuple[str, ...]  # Write the assembly of the pipeline to ``cdk.out``
    tests: tuple[str, ...]  # Test the product itself; none where the repository is not its own
    rules: tuple[str, ...]  # Hold the templates of each stage to rules
    # Make ready to look at a stage, by its name: install, and synthesize its cluster.
    looks: Mapping[str, tuple[str, ...]]
    program: str  # The command line of the product
    # ``BUCKET/KEY`` of the wheel that they install; None where it is in no bucket.
    bucket_object: str | None


class PipelinePlan(Frozen):
    """The pipeline that deploys clusters from a repository."""

    name: str  # Its name, and that of its stack
    cluster: str  # Name of the cluster whose file has it
    file: str  # The cluster file that has it, from the repository's folder
    partition: str  # Partition of its account
    account: str  # Account that it lies in
    region: str  # Region that it lies in
    connection: str  # ARN of the CodeConnections connection to the repository's host
    repository: str  # OWNER/NAME
    branch: str  # Branch whose commits are deployed
    permissions_boundary: str | None  # Name of the IAM policy that bounds every role of its stack
    role: str  # Name of the role of the builds that look before a stage is deployed
    waves: tuple[WavePlan, ...]  # What it deploys, in this order
    log_retention_days: int  # How long the logs of builds are kept, in days
    artifact_retention_days: int  # How long the files of a run are kept, in days
    build: BuildEnvironment  # The machine of each build
    builds: BuildsPlan  # Their commands
    runtimes: Mapping[str, str]  # Versions of the runtimes of each build, by name
    cdk_variables: Mapping[str, str]  # Variables in which each build runs the CDK CLI
    cdk_version: str  # Version of the CDK's command line
    assets_version: str  # Version of the program that uploads files
    assets_schema: str  # Newest schema of asset manifests that this program reads
    comment_length: int  # Most characters of the comment of an approval
    email: str | None  # Who hears of what needs somebody; None: nobody
    events: tuple[EventPlan, ...]  # Of what

    @property
    def stages(self) -> tuple[StagePlan, ...]:
        """Every stage, in the order of deployment."""
        return tuple(stage for wave in self.waves for stage in wave.stages)

    @property
    def role_arn(self) -> str:
        """ARN of the role of the builds that look before a stage is deployed."""
        return f"arn:{self.partition}:iam::{self.account}:role/{self.role}"
