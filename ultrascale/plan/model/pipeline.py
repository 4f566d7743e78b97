"""The pipeline that deploys clusters."""

from collections.abc import Mapping
from dataclasses import dataclass

from ultrascale.catalog.build_environment import BuildEnvironment
from ultrascale.plan.model.cluster import ClusterPlan
from ultrascale.plan.model.observability import EventPlan
from ultrascale.plan.model.pool import WindowPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class StagePlan:
    """One cluster that a pipeline deploys.

    Attributes:
        name: What the pipeline calls it.
        file: Its cluster file, from the repository's folder.
        account: Account that it is deployed into.
        cluster: The cluster.
        approval: Whether somebody has to approve it.
        replace: Protected resources that a deployment may replace or delete.
        gate_role: Name of the role, in its account, by which the pipeline looks before it deploys.
        may_lack_capacity: Stacks that are deployed side by side after all others, as they fail
            where EC2 has no nodes.
        on_nodes: Stacks with a stage of their own at the end, as they fail without nodes.
        node_windows: Windows in which those can have nodes; empty: at any time.
    """

    name: str
    file: str
    account: str
    cluster: ClusterPlan
    approval: bool
    replace: tuple[str, ...]
    gate_role: str
    may_lack_capacity: tuple[str, ...]
    on_nodes: tuple[str, ...]
    node_windows: tuple[WindowPlan, ...]

    @property
    def nodes_stage(self) -> str:
        """Name of the stage of `on_nodes`; no name in a file has a dot."""
        return f"{self.name}.on-nodes"

    @property
    def gate_role_arn(self) -> str:
        """ARN of the role by which the pipeline looks before it deploys."""
        return f"arn:{self.cluster.partition}:iam::{self.account}:role/{self.gate_role}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WavePlan:
    """Stages that are deployed side by side.

    Attributes:
        name: What the pipeline calls them together.
        stages: The stages, at least one.
    """

    name: str
    stages: tuple[StagePlan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildsPlan:
    """The commands of the builds of a pipeline, and what they read beside the repository.

    Attributes:
        version: Version of this product that they run.
        synth: Write the assembly of the pipeline to ``cdk.out``.
        tests: Test the product itself; none where the repository is not its own.
        rules: Hold the templates of each stage to rules.
        looks: Make ready to look at a stage, by its name: install, and synthesize its cluster.
        program: The command line of the product.
        bucket_object: ``BUCKET/KEY`` of the wheel that they install; None where it is in no bucket.
    """

    version: str
    synth: tuple[str, ...]
    tests: tuple[str, ...]
    rules: tuple[str, ...]
    looks: Mapping[str, tuple[str, ...]]
    program: str
    bucket_object: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelinePlan:
    """The pipeline that deploys clusters from a repository.

    Attributes:
        name: Its name, and that of its stack.
        cluster: Name of the cluster whose file has it.
        file: The cluster file that has it, from the repository's folder.
        partition: Partition of its account.
        account: Account that it lies in.
        region: Region that it lies in.
        connection: ARN of the CodeConnections connection to the repository's host.
        repository: OWNER/NAME.
        branch: Branch whose commits are deployed.
        permissions_boundary: Name of the IAM policy that bounds every role of its stack.
        role: Name of the role of the builds that look before a stage is deployed.
        waves: What it deploys, in this order.
        log_retention_days: How long the logs of builds are kept, in days.
        artifact_retention_days: How long the files of a run are kept, in days.
        build: The machine of each build.
        builds: Their commands.
        runtimes: Versions of the runtimes of each build, by name.
        cdk_variables: Variables in which each build runs the CDK CLI.
        cdk_version: Version of the CDK's command line.
        assets_version: Version of the program that uploads files.
        assets_schema: Newest schema of asset manifests that this program reads.
        comment_length: Most characters of the comment of an approval.
        email: Who hears of what needs somebody; None: nobody.
        events: Of what.
    """

    name: str
    cluster: str
    file: str
    partition: str
    account: str
    region: str
    connection: str
    repository: str
    branch: str
    permissions_boundary: str | None
    role: str
    waves: tuple[WavePlan, ...]
    log_retention_days: int
    artifact_retention_days: int
    build: BuildEnvironment
    builds: BuildsPlan
    runtimes: Mapping[str, str]
    cdk_variables: Mapping[str, str]
    cdk_version: str
    assets_version: str
    assets_schema: str
    comment_length: int
    email: str | None
    events: tuple[EventPlan, ...]

    @property
    def stages(self) -> tuple[StagePlan, ...]:
        """Every stage, in the order of deployment."""
        return tuple(stage for wave in self.waves for stage in wave.stages)

    @property
    def role_arn(self) -> str:
        """ARN of the role of the builds that look before a stage is deployed."""
        return f"arn:{self.partition}:iam::{self.account}:role/{self.role}"
