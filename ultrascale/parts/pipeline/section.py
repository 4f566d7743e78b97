"""`pipeline`: the pipeline that deploys clusters from a repository."""

import re
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, Field

from ultrascale.catalog import regions
from ultrascale.config._base import Model, Section
from ultrascale.config._errors import Mistakes, refuse
from ultrascale.config._parts import Readable
from ultrascale.config._rules import rule
from ultrascale.config._values import Distinct, Email, dns_label, matching
from ultrascale.config.cluster import repeated_names
from ultrascale.config.identity import ACCOUNT_ID, AccountId, Identity, RegionName
from ultrascale.config.releases import Release, may_read, release_of
from ultrascale.parts.pipeline import facts
from ultrascale.plan.rules import rule as plan_rule
from ultrascale.release import PRODUCT, VERSION

ConnectionArn = Annotated[
    str,
    matching(
        rf"arn:aws[a-z-]*:(?:codeconnections|codestar-connections):[a-z0-9-]+:{ACCOUNT_ID}:"
        "connection/[A-Za-z0-9-]{1,64}",
        "not the ARN of a CodeConnections connection",
        "write arn:aws:codeconnections:REGION:ACCOUNT:connection/ID",
    ),
]
RepositoryPath = Annotated[
    str,
    # Groups of GitLab have groups within.
    matching(r"[\w.-]+(?:/[\w.-]+)+", "not the path of a repository", "write OWNER/NAME"),
]
BranchName = Annotated[
    str,
    matching(
        # Source: https://git-scm.com/docs/git-check-ref-format
        r"(?=.{1,255}$)(?!.*(?:\.\.|//|/\.|\.lock(?:/|$)|[./]$))[\w][\w./+-]*",
        "not the name of a branch",
        "write it as main",
    ),
]
# It becomes a word of a command.
_CLUSTER_PATH = r"(?!(?:.*/)?\.\.?/)\w[\w.-]*(?:/[\w.][\w.-]*)*\.ya?ml"
ClusterPath = Annotated[
    str,
    matching(
        _CLUSTER_PATH,
        "not the path of a cluster file within the repository",
        "write it from the repository's folder, as clusters/prod.yaml",
    ),
]
ResourceName = Annotated[
    str,
    matching(
        r"\w[\w.:/-]*",
        "not the name or the logical id of a resource",
        "write it as `ultrascale diff` prints it",
    ),
]
# A name of an action consists of it, of a stack's name and of a step: at most 100 characters.
# Source: https://docs.aws.amazon.com/codepipeline/latest/userguide/limits.html
StageName = Annotated[str, dns_label(20)]


def _package(value: str) -> str:
    release_of(value)
    return value


Package = Annotated[str, AfterValidator(_package)]


class ConnectionId(NamedTuple):
    """The parts of the ARN of a connection."""

    partition: str  # Partition of its account
    region: str  # Region that it was made in
    account: str  # Account that it belongs to


class Stage(Model):
    """One cluster that the pipeline deploys."""

    name: StageName
    """Name of the stage, at most 20 characters."""

    cluster: ClusterPath | None = None
    """Cluster file to deploy, from the repository's folder; it states its `account` and has no
    pipeline of its own.

    Default: this file.
    """

    account: AccountId | None = None
    """Account that the cluster file has to state. Default: the one that it states."""

    region: RegionName | None = None
    """Region that the cluster file has to state. Default: the one that it states."""

    wave: StageName | None = None
    """Name of a wave: its stages follow each other and are deployed side by side.

    Default: a wave of its own.
    """

    approval: bool = True
    """Ask somebody to approve what the stage needs, replaces, opens and rolls."""

    replace: Distinct[ResourceName] = ()
    """Protected resources that a deployment may replace, delete or open, as
    `ultrascale diff --replace` takes them; for one run.

    Default: none.
    """


class Notifications(Section):
    """Receiver of notices of the pipeline."""

    email: Email
    """E-mail address that gets the notices."""


class Pipeline(Section):
    """The pipeline that deploys clusters from a repository.

    It lies in the account and Region of its connection.
    """

    connection: ConnectionArn
    """ARN of the CodeConnections connection to the repository's host. The pipeline lies in its
    account and Region.
    """

    repository: RepositoryPath
    """`OWNER/NAME` of the repository."""

    branch: BranchName = "main"
    """Branch whose commits are deployed."""

    # Excluded from a file that is written, as `requires` is.
    package: Package | None = Field(default=None, exclude=True)
    """Wheel of ultrascale that the pipeline installs: a path in the repository,
    `s3://BUCKET/KEY.whl`, or `https://HOST/NAME.whl`. It may end in `#sha256=DIGEST`, and an
    address has to.

    Default: `.`, which is a clone of ultrascale that builds itself.
    """

    stages: Annotated[tuple[Stage, ...], Field(json_schema_extra={"minItems": 1})]
    """Clusters that the pipeline deploys, in this order."""

    notifications: Notifications | None = None
    """Receiver of approvals that wait, permissions that grow and runs that fail.

    Default: nobody.
    """

    @property
    def release(self) -> Release:
        """The release that its builds install; without `package` the repository builds itself."""
        return release_of(self.package or ".")

    @property
    def home(self) -> ConnectionId:
        """Account and Region of the pipeline."""
        return connection_id(self.connection)


class FileKeys(Section):
    """The key of the cluster file that belongs to this part."""

    pipeline: Pipeline | None = None
    """The pipeline that deploys this cluster and others from a repository. Default: none."""


def package_words(release: Release) -> str:
    """Return the release that builds install, and its place."""
    place = f"from {release.place}" if release.place else "as this repository has it"
    return f"builds install {PRODUCT} {release.version} {place}"


def connection_id(arn: str) -> ConnectionId:
    """Return what the ARN of a connection says."""
    _, partition, _, region, account, _ = arn.split(":", 5)
    return ConnectionId(partition, region, account)


def is_cluster_path(text: str) -> bool:
    """Return whether ``text`` is the path of a cluster file as a pipeline can name it."""
    return re.fullmatch(_CLUSTER_PATH, text) is not None


@rule
def stage_names_are_unique(stages: Readable[Stage]) -> Mistakes:
    yield from repeated_names(stages)


@rule
def connection_can_be_used(pipeline: Pipeline) -> Mistakes:
    region = connection_id(pipeline.connection).region
    if region not in regions.REGIONS:
        todo = "copy the ARN from the console"
        yield refuse("connection", f"in the unknown Region {region}", todo)
    elif region not in facts.CONNECTION_REGIONS:
        wrong = f"CloudFormation lists no CodeConnections in {region}"
        todo = "make a connection in another Region: only the pipeline has to lie there"
        yield refuse("connection", wrong, todo)


@rule
def connection_is_of_the_partition(pipeline: Pipeline, identity: Identity) -> Mistakes:
    partition = regions.lookup_region(identity.region).partition
    if connection_id(pipeline.connection).partition != partition:
        wrong = f"outside partition {partition} of {identity.region}"
        yield refuse("connection", wrong, f"make it in {partition}: no role crosses partitions")


@rule
def waves_stand_together(pipeline: Pipeline) -> Mistakes:
    last: dict[str, int] = {}
    for number, stage in enumerate(pipeline.stages):
        if stage.wave is None:
            continue
        if last.get(stage.wave, number - 1) != number - 1:
            wrong = f"apart from stages[{pipeline.stages[last[stage.wave]].name}] of the same wave"
            todo = "list the stages of a wave one after another: they deploy as one"
            yield refuse(f"stages.{number}.wave", wrong, todo)
        last[stage.wave] = number


@rule
def stages_are_there(pipeline: Pipeline) -> Mistakes:
    if not pipeline.stages:
        todo = "add one, such as {name: prod} for the cluster of this file"
        yield refuse("stages", "no stage to deploy", todo, got="")


@rule
def pipeline_has_room(pipeline: Pipeline) -> Mistakes:
    room = facts.PIPELINE_STAGES - len(facts.OWN_STAGES)
    waves = len(dict.fromkeys(stage.wave or stage.name for stage in pipeline.stages))
    if waves > room:
        wrong = f"{waves} waves, and a pipeline has room for {room}"
        yield refuse("stages", wrong, "write the same wave: for several stages", got="")


@rule
def stages_have_names_of_their_own(pipeline: Pipeline) -> Mistakes:
    waves = {stage.wave for stage in pipeline.stages}
    for number, stage in enumerate(pipeline.stages):
        for key, name in (("name", stage.name), ("wave", stage.wave)):
            if name in facts.OWN_STAGES:
                wrong = "the name of a stage that each pipeline has"
                yield refuse(f"stages.{number}.{key}", wrong, "choose another")
        if stage.wave is None and stage.name in waves:
            wrong = "a wave has this name already"
            yield refuse(f"stages.{number}.name", wrong, "choose another")


@rule
def stages_deploy_a_file_each(pipeline: Pipeline) -> Mistakes:
    seen: dict[str | None, int] = {}
    for number, stage in enumerate(pipeline.stages):
        if stage.cluster in seen:
            first = f"stages[{pipeline.stages[seen[stage.cluster]].name}]"
            if stage.cluster is None:
                wrong = f"{first} already deploys this file's cluster"
                yield refuse(f"stages.{number}", wrong, "add cluster: with another file", got="")
            else:
                wrong = f"{first} already deploys this cluster"
                yield refuse(f"stages.{number}.cluster", wrong, "keep one stage")
        seen.setdefault(stage.cluster, number)


@rule
def own_stage_states_what_the_file_does(pipeline: Pipeline, identity: Identity) -> Mistakes:
    for number, stage in enumerate(pipeline.stages):
        if stage.cluster is not None:
            continue
        at = f"stages.{number}"
        if identity.account is None:
            wrong = "deploys this file, which states no account"
            yield refuse(at, wrong, "write account: beside region:, at the top", got="")
        elif stage.account not in (None, identity.account):
            todo = f"this file says {identity.account}; leave it out, or add cluster:"
            yield refuse(f"{at}.account", "not the account of this file", todo)
        if stage.region not in (None, identity.region):
            todo = f"this file says {identity.region}; leave it out, or add cluster:"
            yield refuse(f"{at}.region", "not the Region of this file", todo)


@rule
def package_may_read_the_file(pipeline: Pipeline, identity: Identity) -> Mistakes:
    if pipeline.package is None or identity.requires is None:
        return
    version = pipeline.release.version
    if not may_read(identity.requires, version):
        wrong = f"version {version}, but this file requires {identity.requires!r}"
        yield refuse("package", wrong, "change package or requires")


@plan_rule(severity="warning")
def pipeline_runs_this_release(pipeline: Pipeline) -> Mistakes:
    """Yield a pipeline that synthesizes with another release than the running one."""
    release = pipeline.release
    if not release.is_running:
        wrong = (
            f"the pipeline installs {PRODUCT} {release.version}, and this is {VERSION}: what it "
            "synthesizes may differ from what you see here"
        )
        todo = f"install {release.place} here, or change the key"
        yield refuse("package", wrong, todo, got="")


@plan_rule(severity="note")
def release_is_named(pipeline: Pipeline) -> Mistakes:
    """Yield the release that the builds of the pipeline install."""
    yield refuse("", f"the pipeline's {package_words(pipeline.release)}", got="")
