"""What stacks leave in the account: whether it is there, what it costs, and what removes it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ultrascale.account import Account
from ultrascale.errors import UnansweredError
from ultrascale.teardown.buckets import empty_and_delete
from ultrascale.teardown.model import State, StoppedError, Thing

FILE_SYSTEM, BUCKET = "AWS::FSx::FileSystem", "AWS::S3::Bucket"
REPOSITORY, LOG_GROUP = "AWS::ECR::Repository", "AWS::Logs::LogGroup"
SECURITY_GROUP = "AWS::EC2::SecurityGroup"
DATABASE, DATABASE_INSTANCE = "AWS::RDS::DBCluster", "AWS::RDS::DBInstance"
KEY, WORKSPACE = "AWS::KMS::Key", "AWS::APS::Workspace"
VOLUME = "AWS::EC2::Volume"
IN_VPC = frozenset({FILE_SYSTEM, SECURITY_GROUP, DATABASE, DATABASE_INSTANCE})
"""What keeps a VPC from being deleted for as long as it is there."""

# They go with what they belong to.
PARTS = frozenset(
    {
        "AWS::EC2::SecurityGroupEgress",
        "AWS::EC2::SecurityGroupIngress",
        "AWS::S3::BucketPolicy",
    }
)
# Source: https://aws.amazon.com/rds/aurora/pricing/
_FREE = frozenset(
    {
        "AWS::RDS::DBClusterParameterGroup",
        "AWS::RDS::DBParameterGroup",
        "AWS::RDS::DBSubnetGroup",
    }
)
_AGAIN = "then run the command again: it goes on here"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """How a type of resource is looked up and removed.

    Attributes:
        found: Asks for one, by its id.
        absent: AWS's code where it is not there.
        command: The command that removes it.
        state: What an answer means; None: it is there.
        remove: Removes one, by its id; None: a plan never removes one.
        paid: Whether one is charged for that is not used.
    """

    found: Callable[[Account, str], Mapping[str, Any]]
    absent: str
    command: str
    state: Callable[[Mapping[str, Any], str], State] | None = None
    remove: Callable[[Account, str], object] | None = None
    paid: bool = True


def _file_system(answer: Mapping[str, Any], _: str) -> State:
    lifecycles = {each["Lifecycle"] for each in answer["FileSystems"]}
    return "going" if lifecycles == {"DELETING"} else "there" if lifecycles else "gone"


def _log_group(answer: Mapping[str, Any], id: str) -> State:
    found = answer.get("logGroups", [])
    return "there" if any(each["logGroupName"] == id for each in found) else "gone"


def _key(answer: Mapping[str, Any], _: str) -> State:
    # It costs nothing from then on, and nobody can use it.
    # Source: https://docs.aws.amazon.com/kms/latest/developerguide/deleting-keys.html
    return "gone" if answer["KeyMetadata"]["KeyState"] == "PendingDeletion" else "there"


def _database(answer: Mapping[str, Any], _: str) -> State:
    statuses = {each["Status"] for each in answer["DBClusters"]}
    return "going" if statuses == {"deleting"} else "there"


def _database_instance(answer: Mapping[str, Any], _: str) -> State:
    statuses = {each["DBInstanceStatus"] for each in answer["DBInstances"]}
    return "going" if statuses == {"deleting"} else "there"


_KINDS: Mapping[str, _Kind] = {
    FILE_SYSTEM: _Kind(
        found=lambda account, id: account.ask(
            account.client("fsx").describe_file_systems, FileSystemIds=[id]
        ),
        absent="FileSystemNotFound",
        command="aws fsx delete-file-system --file-system-id {id} --region {region}",
        state=_file_system,
        # Source: https://docs.aws.amazon.com/fsx/latest/APIReference/API_DeleteFileSystem.html
        remove=lambda account, id: account.ask(
            account.client("fsx").delete_file_system,
            FileSystemId=id,
            LustreConfiguration={"SkipFinalBackup": True},
        ),
    ),
    BUCKET: _Kind(
        found=lambda account, id: account.ask(account.client("s3").get_bucket_location, Bucket=id),
        absent="NoSuchBucket",
        command="empty it (all versions), then aws s3api delete-bucket --bucket {id} "
        "--region {region}",
    ),
    REPOSITORY: _Kind(
        found=lambda account, id: account.ask(
            account.client("ecr").describe_repositories, repositoryNames=[id]
        ),
        absent="RepositoryNotFoundException",
        command="aws ecr delete-repository --repository-name {id} --force --region {region}",
        remove=lambda account, id: account.ask(
            account.client("ecr").delete_repository, repositoryName=id, force=True
        ),
    ),
    LOG_GROUP: _Kind(
        found=lambda account, id: account.ask(
            account.client("logs").describe_log_groups, logGroupNamePrefix=id
        ),
        absent="ResourceNotFoundException",
        command="aws logs delete-log-group --log-group-name {id} --region {region}",
        state=_log_group,
        remove=lambda account, id: account.ask(
            account.client("logs").delete_log_group, logGroupName=id
        ),
    ),
    SECURITY_GROUP: _Kind(
        found=lambda account, id: account.ask(
            account.client("ec2").describe_security_groups, GroupIds=[id]
        ),
        absent="InvalidGroup.NotFound",
        command="aws ec2 delete-security-group --group-id {id} --region {region}",
        remove=lambda account, id: account.ask(
            account.client("ec2").delete_security_group, GroupId=id
        ),
        paid=False,
    ),
    VOLUME: _Kind(
        found=lambda account, id: account.ask(
            account.client("ec2").describe_volumes, VolumeIds=[id]
        ),
        absent="InvalidVolume.NotFound",
        command="aws ec2 delete-volume --volume-id {id} --region {region}",
    ),
    KEY: _Kind(
        found=lambda account, id: account.ask(account.client("kms").describe_key, KeyId=id),
        absent="NotFoundException",
        command="aws kms schedule-key-deletion --key-id {id} --region {region}: what it encrypted "
        "is lost",
        state=_key,
    ),
    DATABASE: _Kind(
        found=lambda account, id: account.ask(
            account.client("rds").describe_db_clusters, DBClusterIdentifier=id
        ),
        absent="DBClusterNotFoundFault",
        command="aws rds modify-db-cluster --no-deletion-protection, then aws rds delete-db-cluster"
        " --final-db-snapshot-identifier, both with --db-cluster-identifier {id} --region {region}"
        "; that snapshot is paid for from then on",
        state=_database,
    ),
    DATABASE_INSTANCE: _Kind(
        found=lambda account, id: account.ask(
            account.client("rds").describe_db_instances, DBInstanceIdentifier=id
        ),
        absent="DBInstanceNotFound",
        command="aws rds modify-db-instance --no-deletion-protection, then aws rds "
        "delete-db-instance --final-db-snapshot-identifier, both with --db-instance-identifier "
        "{id} --region {region}; that snapshot is paid for from then on",
        state=_database_instance,
    ),
    WORKSPACE: _Kind(
        found=lambda account, id: account.ask(
            account.client("amp").describe_workspace, workspaceId=id.rpartition("/")[2]
        ),
        absent="ResourceNotFoundException",
        command="aws amp delete-workspace --region {region} --workspace-id, the end of {id}",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RetainedTarget:
    """Deletes a resource that no stack has any longer, because the user named it.

    Attributes:
        account: The account.
        type: CloudFormation's name of its type.
        id: What its service calls it.
        note: Its name in the cluster file.
    """

    account: Account
    type: str
    id: str
    note: str = ""

    @property
    def thing(self) -> Thing:
        """The resource."""
        return Thing(kind=self.type, id=self.id, note=self.note)

    @property
    def things(self) -> Sequence[Thing]:
        """The resource alone."""
        return (self.thing,)

    def look(self) -> State:
        """Return how far it is."""
        return look(self.account, self.type, self.id)

    def remove(self) -> None:
        """Delete it, with all that it holds.

        A security group goes once nothing uses it; until then this does nothing.
        """
        if self.type == BUCKET:
            empty_and_delete(self.account, self.id)
            return
        remove = _KINDS[self.type].remove
        assert remove is not None, f"a plan never deletes {self.type}"
        try:
            remove(self.account, self.id)
        except UnansweredError as error:
            if error.code not in ("DependencyViolation", _KINDS[self.type].absent):
                raise

    def stuck(self) -> StoppedError:
        """Return that its service does not delete it."""
        return StoppedError(
            str(self.thing),
            why="its service has not deleted it in time",
            fix=f"see what still uses it, {_AGAIN}",
        )


def look(account: Account, type: str, id: str) -> State:
    """Return whether a resource is there; of a type that is not known it is said to be.

    Args:
        account: The account.
        type: CloudFormation's name of its type.
        id: What its service calls it.

    Raises:
        UnansweredError: Nobody could tell.
    """
    kind = _KINDS.get(type)
    if kind is None:
        return "there"
    try:
        answer = kind.found(account, id)
    except UnansweredError as error:
        if error.code == kind.absent:
            return "gone"
        raise
    return kind.state(answer, id) if kind.state else "there"


def is_known(type: str) -> bool:
    """Return whether `look` can tell of a type."""
    return type in _KINDS


def is_free(type: str) -> bool:
    """Return whether nothing of a type is ever charged for, so that nobody has to look for it."""
    return type in _FREE


def command(type: str, id: str, region: str) -> str:
    """Return what removes a resource."""
    kind = _KINDS.get(type)
    if kind is None:
        return f"look at it in the console of {type.split('::')[1]} in {region}"
    return kind.command.format(id=id, region=region)


def is_paid(type: str) -> bool:
    """Return whether a resource of a type is charged for; one of an unknown type may be."""
    kind = _KINDS.get(type)
    return type not in _FREE if kind is None else kind.paid
