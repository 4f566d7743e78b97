"""Whether a cluster file is the one that is deployed."""

from datetime import datetime
from typing import TYPE_CHECKING

from ultrascale.errors import QuestionError
from ultrascale.guard.sources import as_deployed, read_deployed
from ultrascale.guard.templates import Templates
from ultrascale.plan.model import ClusterPlan
from ultrascale.plan.stacks import not_due

if TYPE_CHECKING:
    from ultrascale.account import Account

_SHOWN = 5


def differing_stacks(account: "Account", plan: ClusterPlan, new: Templates, at: datetime) -> str:
    """Return the stacks whose deployed templates are not those of the file; empty without any.

    A stack that waits for the window of its nodes may be missing.

    Args:
        account: The account of the cluster.
        plan: The cluster.
        new: The templates of the file.
        at: The time that counts as now, in UTC.

    Raises:
        QuestionError: No stack of the file is deployed.
        AccountError: AWS did not answer, or a stack is changing or failed half-way.
    """
    old, new = read_deployed(account, plan.name, new).templates, as_deployed(new)
    if not old.keys() & new.keys():
        raise QuestionError(
            [f"{plan.name}: nothing of it is deployed in {plan.region}; `ultrascale deploy` first"]
        )
    late = not_due(plan, at).keys() - old.keys()
    every = (old.keys() | new.keys()) - late
    others = sorted(name for name in every if old.get(name) != new.get(name))
    more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
    return ", ".join(others[:_SHOWN]) + more
