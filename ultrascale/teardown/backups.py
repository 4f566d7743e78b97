"""Backups of file systems: those that a user made outlive them, and are paid for.

Sources:
    https://docs.aws.amazon.com/fsx/latest/LustreGuide/using-backups-fsx.html
    https://docs.aws.amazon.com/fsx/latest/APIReference/API_Backup.html
"""

from collections.abc import Iterator, Set

from ultrascale.account import Account
from ultrascale.plan import ClusterPlan
from ultrascale.plan.stacks import stack_of
from ultrascale.teardown.leftovers import STACK_TAG
from ultrascale.teardown.model import Left, Thing
from ultrascale.teardown.remains import tags

_KIND = "FSx backup"
# FSx deletes these with their file system.
_AUTOMATIC = "AUTOMATIC"


def backups(account: Account, plan: ClusterPlan, going: Set[str], *, asked: bool) -> Iterator[Left]:
    """Yield the backups of the file systems of a cluster, those that are gone among them.

    Args:
        account: The account.
        plan: The cluster.
        going: Ids of file systems that go.
        asked: Whether the plan says that they stay.
    """
    stack = stack_of(plan.name, "storage")
    for each in account.ask_all(
        account.client("fsx").describe_backups, lambda page: page["Backups"]
    ):
        system = each.get("FileSystem", {})
        id = system.get("FileSystemId", "")
        goes_along = each["Type"] == _AUTOMATIC and id in going
        if tags(system).get(STACK_TAG) != stack or goes_along:
            continue
        made = each.get("CreationTime")
        age = f"made {made:%Y-%m-%d}" if made else "of unknown age"
        yield Left(
            thing=Thing(kind=_KIND, id=each["BackupId"], note=f"of {id}, {age}"),
            why="a backup of a file system of the cluster",
            command=f"aws fsx delete-backup --backup-id {each['BackupId']} --region {plan.region}",
            asked=asked,
        )
