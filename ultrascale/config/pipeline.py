"""`pipeline`: the pipeline that deploys clusters from a repository."""

import re
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, Field

from ultrascale.config._base import Model, dns_label, matching
from ultrascale.config._places import AccountId, RegionName
from ultrascale.config.operations import Email

ConnectionArn = Annotated[
    str,
    AfterValidator(
        matching(
            r"arn:aws[a-z-]*:(?:codeconnections|codestar-connections):[a-z0-9-]+:\d{12}:connection/[\w-]+",
            "not the ARN of a CodeConnections connection",
            "write arn:aws:codeconnections:REGION:ACCOUNT:connection/ID",
        )
    ),
]
RepositoryPath = Annotated[
    str,
    AfterValidator(
        # Groups of GitLab have groups within.
        matching(r"[\w.-]+(?:/[\w.-]+)+", "not the path of a repository", "write OWNER/NAME")
    ),
]
BranchName = Annotated[
    str,
    AfterValidator(matching(r"[\w.][\w./+-]*", "not the name of a branch", "write it as main")),
]
# It becomes a word of a command.
_CLUSTER_PATH = r"(?!(?:.*/)?\.\.?/)\w[\w.-]*(?:/[\w.][\w.-]*)*\.ya?ml"
ClusterPath = Annotated[
    str,
    AfterValidator(
        matching(
            _CLUSTER_PATH,
            "not the path of a cluster file within the repository",
            "write it from the repository's folder, as clusters/prod.yaml",
        )
    ),
]
ResourceName = Annotated[
    str,
    AfterValidator(
        matching(
            r"\w[\w.:/-]*",
            "not the name or the logical id of a resource",
            "write it as `ultrascale diff` prints it",
        )
    ),
]
# A name of an action consists of it, of a stack's name and of a step: at most 100 characters.
# Source: https://docs.aws.amazon.com/codepipeline/latest/userguide/limits.html
StageName = Annotated[str, dns_label(20)]


class ConnectionId(NamedTuple):
    """What the ARN of a connection says.

    Attributes:
        partition: Partition of its account.
        region: Region that it was made in.
        account: Account that it belongs to.
    """

    partition: str
    region: str
    account: str


class Stage(Model):
    """One cluster that the pipeline deploys.

    Attributes:
        name: What the pipeline calls it.
        cluster: Its cluster file, from the repository's folder; None: the file that has the
            pipeline.
        account: Account that the cluster file must state; None leaves that to the cluster file.
        region: Region that the cluster file must state; None leaves that to the cluster file.
        wave: Stages of one wave, which stand next to each other, are deployed side by side; None:
            a wave of its own.
        approval: Whether somebody has to approve what the stage needs, replaces and rolls.
        replace: Protected resources that a deployment may replace or delete.
    """

    name: StageName
    cluster: ClusterPath | None = None
    account: AccountId | None = None
    region: RegionName | None = None
    wave: StageName | None = None
    approval: bool = True
    replace: tuple[ResourceName, ...] = ()


class Notifications(Model):
    """Who hears that an approval waits, or that a run failed."""

    email: Email


class Pipeline(Model):
    """The pipeline that deploys clusters from a repository.

    It lies in the account and Region of its connection.

    Attributes:
        connection: ARN of the CodeConnections connection to the repository's host.
        repository: OWNER/NAME.
        branch: Branch whose commits are deployed.
        stages: What it deploys, in this order.
        notifications: Who hears of what needs somebody; None: nobody.
    """

    connection: ConnectionArn
    repository: RepositoryPath
    branch: BranchName = "main"
    stages: Annotated[tuple[Stage, ...], Field(min_length=1)]
    notifications: Notifications | None = None

    @property
    def home(self) -> ConnectionId:
        """Where the pipeline lies."""
        return connection_id(self.connection)


def connection_id(arn: str) -> ConnectionId:
    """Return what the ARN of a connection says."""
    _, partition, _, region, account, _ = arn.split(":", 5)
    return ConnectionId(partition, region, account)


def is_cluster_path(text: str) -> bool:
    """Return whether ``text`` is the path of a cluster file as a pipeline can name it."""
    return re.fullmatch(_CLUSTER_PATH, text) is not None
