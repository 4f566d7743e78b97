"""The inventory: a row for each kind of resource that a cluster may leave in its account.

A row says how resources of the kind are found and attributed to the cluster, how a resource is
deleted and whether an unused resource costs money. The plan of a teardown, the teardown and the
search afterwards read the rows.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from ultrascale.account import Account
from ultrascale.core.table import all_parts
from ultrascale.errors import UnansweredError
from ultrascale.frozen import Frozen
from ultrascale.teardown import ec2, prices, retained
from ultrascale.teardown.clusters import CLUSTER, eks_cluster
from ultrascale.teardown.model import Found, Left, Search, State, StoppedError, Thing
from ultrascale.teardown.reservations import RESERVATION
from ultrascale.teardown.stacks import AGAIN, STACK, live_stacks
from ultrascale.teardown.storage import (
    BACKUP,
    BUCKET,
    FILE_SYSTEM,
    empty_and_delete,
    left_backups,
)

WORKSPACE = "AWS::APS::Workspace"
_GOES_ON = "then run the command again: it goes on here"


class Kind(Frozen):
    """A row of the inventory."""

    # Command that deletes a resource, with ``{id}``, ``{name}`` (the end of an ARN), ``{region}``.
    command: str
    searches: tuple[Search, ...] = ()  # Searches for a cluster's resources of the kind
    # Asks for a resource by its id; None where only searches find the kind.
    look: Callable[[Account, str], State] | None = None
    absent: str = ""  # AWS's error code for an id that does not exist
    # Deletes a resource by its id; None where no teardown deletes the kind by itself.
    delete: Callable[[Account, str], object] | None = None
    in_use: tuple[str, ...] = ()  # AWS's error codes for a resource that is still in use
    user: str = ""  # Command that lists the users of a resource
    paid: bool = True  # Whether an unused resource costs money
    keeps_vpc: bool = False  # Whether such a resource keeps its VPC from being deleted


def _look_at_file_system(account: Account, id: str) -> State:
    answer = account.ask(account.client("fsx").describe_file_systems, FileSystemIds=[id])
    lifecycles = {system["Lifecycle"] for system in answer["FileSystems"]}
    return "going" if lifecycles == {"DELETING"} else "there" if lifecycles else "gone"


def _look_at_bucket(account: Account, id: str) -> State:
    account.ask(account.client("s3").get_bucket_location, Bucket=id)
    return "there"


def _look_at_repository(account: Account, id: str) -> State:
    account.ask(account.client("ecr").describe_repositories, repositoryNames=[id])
    return "there"


def _look_at_log_group(account: Account, id: str) -> State:
    answer = account.ask(account.client("logs").describe_log_groups, logGroupNamePrefix=id)
    groups = answer.get("logGroups", [])
    return "there" if any(group["logGroupName"] == id for group in groups) else "gone"


def _look_at_security_group(account: Account, id: str) -> State:
    account.ask(account.client("ec2").describe_security_groups, GroupIds=[id])
    return "there"


def _look_at_interface(account: Account, id: str) -> State:
    account.ask(account.client("ec2").describe_network_interfaces, NetworkInterfaceIds=[id])
    return "there"


def _look_at_volume(account: Account, id: str) -> State:
    account.ask(account.client("ec2").describe_volumes, VolumeIds=[id])
    return "there"


def _look_at_key(account: Account, id: str) -> State:
    answer = account.ask(account.client("kms").describe_key, KeyId=id)
    # A key that is scheduled for deletion costs nothing, and nobody can use it.
    # Source: https://docs.aws.amazon.com/kms/latest/developerguide/deleting-keys.html
    return "gone" if answer["KeyMetadata"]["KeyState"] == "PendingDeletion" else "there"


def _look_at_database(account: Account, id: str) -> State:
    answer = account.ask(account.client("rds").describe_db_clusters, DBClusterIdentifier=id)
    statuses = {cluster["Status"] for cluster in answer["DBClusters"]}
    return "going" if statuses == {"deleting"} else "there"


def _look_at_database_instance(account: Account, id: str) -> State:
    answer = account.ask(account.client("rds").describe_db_instances, DBInstanceIdentifier=id)
    statuses = {instance["DBInstanceStatus"] for instance in answer["DBInstances"]}
    return "going" if statuses == {"deleting"} else "there"


def _look_at_workspace(account: Account, id: str) -> State:
    account.ask(account.client("amp").describe_workspace, workspaceId=_name_of_arn(id))
    return "there"


# In the order of the search: kinds that cost most an hour come first.
_CORE: Mapping[str, Kind] = {
    ec2.INSTANCE: Kind(
        searches=ec2.by_tags(ec2.list_instances),
        command="aws ec2 terminate-instances --instance-ids {id} --region {region}",
    ),
    ec2.SCALING_GROUP: Kind(
        searches=ec2.by_tags(ec2.list_scaling_groups),
        command="aws autoscaling delete-auto-scaling-group --force-delete "
        "--auto-scaling-group-name {id} --region {region}",
        paid=False,
    ),
    STACK: Kind(searches=(live_stacks,), command=AGAIN),
    CLUSTER: Kind(
        searches=(eks_cluster,),
        command=f"{AGAIN}; where it is of no stack: aws eks delete-cluster --name {{id}} "
        "--region {region}",
    ),
    RESERVATION: Kind(
        command="aws ec2 cancel-capacity-reservation --capacity-reservation-id {id} "
        "--region {region}",
    ),
    ec2.VOLUME: Kind(
        searches=ec2.by_tags(ec2.list_volumes),
        look=_look_at_volume,
        absent="InvalidVolume.NotFound",
        command="aws ec2 delete-volume --volume-id {id} --region {region}",
    ),
    ec2.SNAPSHOT: Kind(
        searches=ec2.by_tags(ec2.list_snapshots),
        command="aws ec2 delete-snapshot --snapshot-id {id} --region {region}",
    ),
    ec2.ADDRESS: Kind(
        searches=ec2.by_tags(ec2.list_addresses),
        command="aws ec2 release-address --allocation-id {id} --region {region}",
    ),
    ec2.LOAD_BALANCER: Kind(
        searches=(ec2.load_balancers,),
        command="aws elbv2 delete-load-balancer --load-balancer-arn {id} --region {region}",
    ),
    ec2.CLASSIC_LOAD_BALANCER: Kind(
        searches=(ec2.load_balancers,),
        command="aws elb delete-load-balancer --load-balancer-name {name} --region {region}",
    ),
    ec2.INTERFACE: Kind(
        searches=ec2.by_tags(ec2.list_interfaces),
        look=_look_at_interface,
        absent="InvalidNetworkInterfaceID.NotFound",
        command="aws ec2 delete-network-interface --network-interface-id {id} --region {region}",
        delete=lambda account, id: account.ask(
            account.client("ec2").delete_network_interface, NetworkInterfaceId=id
        ),
        # EC2's two codes for an interface that is attached again.
        in_use=("InvalidParameterValue", "InvalidNetworkInterface.InUse"),
        user="aws ec2 describe-network-interfaces --network-interface-ids {id} --region {region}",
        paid=False,
    ),
    ec2.SECURITY_GROUP: Kind(
        searches=(
            *ec2.by_tags(ec2.list_security_groups),
            retained.by_deleted_stacks,
            retained.by_stack_tags,
        ),
        look=_look_at_security_group,
        absent="InvalidGroup.NotFound",
        command="aws ec2 delete-security-group --group-id {id} --region {region}",
        delete=lambda account, id: account.ask(
            account.client("ec2").delete_security_group, GroupId=id
        ),
        in_use=("DependencyViolation",),
        paid=False,
        keeps_vpc=True,
    ),
    ec2.LAUNCH_TEMPLATE: Kind(
        searches=ec2.by_tags(ec2.list_launch_templates),
        command="aws ec2 delete-launch-template --launch-template-id {id} --region {region}",
        paid=False,
    ),
    ec2.INSTANCE_PROFILE: Kind(
        searches=(ec2.instance_profiles,),
        command="aws iam delete-instance-profile --instance-profile-name {id}, its role removed "
        "from it first",
        paid=False,
    ),
    FILE_SYSTEM: Kind(
        searches=(retained.by_file_system_tags,),
        look=_look_at_file_system,
        absent="FileSystemNotFound",
        command="aws fsx delete-file-system --file-system-id {id} --region {region}",
        # Source: https://docs.aws.amazon.com/fsx/latest/APIReference/API_DeleteFileSystem.html
        delete=lambda account, id: account.ask(
            account.client("fsx").delete_file_system,
            FileSystemId=id,
            LustreConfiguration={"SkipFinalBackup": True},
        ),
        keeps_vpc=True,
    ),
    BACKUP: Kind(
        searches=(left_backups,),
        command="aws fsx delete-backup --backup-id {id} --region {region}",
    ),
    retained.DATABASE: Kind(
        searches=(retained.by_deleted_stacks, retained.by_stack_tags),
        look=_look_at_database,
        absent="DBClusterNotFoundFault",
        command="aws rds modify-db-cluster --no-deletion-protection, then aws rds delete-db-cluster"
        " --final-db-snapshot-identifier, both with --db-cluster-identifier {id} --region {region}"
        "; that snapshot is paid for from then on",
        keeps_vpc=True,
    ),
    retained.DATABASE_INSTANCE: Kind(
        searches=(retained.by_deleted_stacks, retained.by_stack_tags),
        look=_look_at_database_instance,
        absent="DBInstanceNotFound",
        command="aws rds modify-db-instance --no-deletion-protection, then aws rds "
        "delete-db-instance --final-db-snapshot-identifier, both with --db-instance-identifier "
        "{id} --region {region}; that snapshot is paid for from then on",
        keeps_vpc=True,
    ),
    # Free: https://aws.amazon.com/rds/aurora/pricing/
    "AWS::RDS::DBClusterParameterGroup": Kind(
        command="aws rds delete-db-cluster-parameter-group --db-cluster-parameter-group-name {id} "
        "--region {region}",
        paid=False,
    ),
    "AWS::RDS::DBParameterGroup": Kind(
        command="aws rds delete-db-parameter-group --db-parameter-group-name {id} "
        "--region {region}",
        paid=False,
    ),
    "AWS::RDS::DBSubnetGroup": Kind(
        command="aws rds delete-db-subnet-group --db-subnet-group-name {id} --region {region}",
        paid=False,
    ),
    BUCKET: Kind(
        searches=(retained.by_deleted_stacks, retained.by_stack_tags),
        look=_look_at_bucket,
        absent="NoSuchBucket",
        command="empty it (all versions), then aws s3api delete-bucket --bucket {id} "
        "--region {region}",
        delete=empty_and_delete,
    ),
    retained.REPOSITORY: Kind(
        searches=(retained.by_deleted_stacks, retained.by_stack_tags, retained.by_service),
        look=_look_at_repository,
        absent="RepositoryNotFoundException",
        command="aws ecr delete-repository --repository-name {id} --force --region {region}",
        delete=lambda account, id: account.ask(
            account.client("ecr").delete_repository, repositoryName=id, force=True
        ),
    ),
    retained.LOG_GROUP: Kind(
        searches=(retained.by_deleted_stacks, retained.by_stack_tags, retained.by_service),
        look=_look_at_log_group,
        absent="ResourceNotFoundException",
        command="aws logs delete-log-group --log-group-name {id} --region {region}",
        delete=lambda account, id: account.ask(
            account.client("logs").delete_log_group, logGroupName=id
        ),
    ),
    retained.KEY: Kind(
        searches=(retained.by_deleted_stacks, retained.by_stack_tags),
        look=_look_at_key,
        absent="NotFoundException",
        command="aws kms schedule-key-deletion --key-id {id} --region {region}: what it encrypted "
        "is lost",
    ),
    WORKSPACE: Kind(
        searches=(retained.by_deleted_stacks,),
        look=_look_at_workspace,
        absent="ResourceNotFoundException",
        command="aws amp delete-workspace --region {region} --workspace-id, the end of {id}",
    ),
}


@cache
def inventory() -> Mapping[str, Kind]:
    """Return the row of each kind by its name; rows of parts follow the EKS cluster's row."""
    modules = (part.module("teardown") for part in all_parts() if part.has_teardown)
    parts: dict[str, Kind] = {name: row for own in modules for name, row in own.KINDS.items()}
    rows: dict[str, Kind] = {}
    for name, row in _CORE.items():
        rows |= {name: row, **(parts if name == CLUSTER else {})}
    return rows


def searches() -> tuple[Search, ...]:
    """Return the searches of the inventory without repetition, in their order."""
    return tuple(dict.fromkeys(search for kind in inventory().values() for search in kind.searches))


def look(account: Account, type: str, id: str) -> State:
    """Return a resource's state; `there` for a kind that AWS does not describe by id.

    Args:
        account: The account.
        type: CloudFormation's name of its type.
        id: Its name in its service.

    Raises:
        UnansweredError: AWS did not answer.
    """
    kind = inventory().get(type)
    if kind is None or kind.look is None:
        return "there"
    try:
        return kind.look(account, id)
    except UnansweredError as error:
        if error.code == kind.absent:
            return "gone"
        raise


def can_look(type: str) -> bool:
    """Return whether AWS describes a resource of a type by its id."""
    kind = inventory().get(type)
    return kind is not None and kind.look is not None


def command(type: str, id: str, region: str) -> str:
    """Return the command that deletes a resource."""
    kind = inventory().get(type)
    if kind is None:
        return f"look at it in the console of {type.split('::')[1]} in {region}"
    return kind.command.format(id=id, name=_name_of_arn(id), region=region)


def _name_of_arn(id: str) -> str:
    return id.rpartition("/")[2]


def is_paid(type: str) -> bool:
    """Return whether a resource of a type costs money; an unknown type may."""
    kind = inventory().get(type)
    return kind is None or kind.paid


def as_left(found: Found, region: str, *, asked: bool = False) -> Left:
    """Return a found resource as a leftover, with its price and the command that deletes it.

    Args:
        found: The resource.
        region: Its Region.
        asked: Whether the plan says that it stays.
    """
    price, hourly = prices.of_type(found.thing.kind) if found.price is None else found.price
    return Left(
        thing=found.thing,
        why=found.why,
        command=found.command or command(found.thing.kind, found.thing.id, region),
        price=price,
        paid=is_paid(found.thing.kind) and not found.prepaid,
        asked=asked,
        usd_per_hour=hourly,
    )


class ResourceTarget(Frozen):
    """Target that deletes one resource, with all that it holds."""

    account: Account  # The account
    thing: Thing  # The resource

    @property
    def things(self) -> Sequence[Thing]:
        """The resource alone."""
        return (self.thing,)

    def look(self) -> State:
        """Return the resource's state."""
        return look(self.account, self.thing.kind, self.thing.id)

    def remove(self) -> None:
        """Delete the resource; one that is still in use is left for the next round."""
        kind = inventory()[self.thing.kind]
        assert kind.delete is not None, f"no teardown deletes {self.thing.kind}"
        try:
            kind.delete(self.account, self.thing.id)
        except UnansweredError as error:
            if error.code not in (*kind.in_use, kind.absent):
                raise

    def stuck(self) -> StoppedError:
        """Return the reason: the service does not delete the resource."""
        user = inventory()[self.thing.kind].user
        if user:
            named = user.format(id=self.thing.id, region=self.account.region)
            return StoppedError(
                str(self.thing),
                why="it is in use",
                fix=f"`{named}` says by what; end that, {_GOES_ON}",
            )
        return StoppedError(
            str(self.thing),
            why="its service has not deleted it in time",
            fix=f"see what still uses it, {_GOES_ON}",
        )
