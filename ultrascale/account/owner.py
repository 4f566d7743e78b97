"""The account that a cluster file names."""

from typing import TYPE_CHECKING

from ultrascale import account
from ultrascale.errors import QuestionError

if TYPE_CHECKING:
    from ultrascale.account import Account
    from ultrascale.plan.model import ClusterPlan


def connect_to_owner(plan: "ClusterPlan", profile: str | None) -> "Account":
    """Return the account of the user's credentials, which has to be that of the cluster file.

    Another account may have a cluster of the same name.

    Args:
        plan: The cluster.
        profile: Profile of the AWS CLI's configuration; None for the one that is set, if any.

    Raises:
        AccountError: There are no credentials, or AWS cannot be reached.
        QuestionError: The cluster file names another account.
    """
    owner = account.connect(plan.region, profile)
    if plan.account not in (None, owner.id):
        raise QuestionError(
            [
                f"account: the cluster file names account {plan.account}, the credentials belong "
                f"to {owner.id}; name another profile by --profile"
            ]
        )
    return owner
