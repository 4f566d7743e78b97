"""The actions of a live run, in order, each with the commands of a user."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

HOURS: Mapping[str, float] = {"cpu": 4, "one-accelerator": 5}
"""Most paid hours of a profile's nodes: an estimate, which no run has measured."""

DESTROY = (
    "ultrascale destroy {file} --confirm {name} --delete-logs --delete-storage checkpoints "
    "--delete-storage trainer --skip-kubernetes"
)
STACKS = "aws cloudformation describe-stacks --region {region} --output json"
TAGGED = "aws resourcegroupstaggingapi get-resources --region {region} --output json"
CALLER = "aws sts get-caller-identity --output json"
BUDGETS = "aws budgets describe-budgets --account-id {account} --output json"
ALARMS = (
    "aws budgets describe-notifications-for-budget --account-id {account} --budget-name {of} "
    "--output json"
)
BUILD = "aws codebuild start-build --project-name {name}-images --region {region} --output json"
BUILDS = "aws codebuild batch-get-builds --ids {of} --region {region} --output json"
KEY = "aws kms describe-key --key-id {of} --region {region} --output json"
END_KEY = (
    "aws kms schedule-key-deletion --key-id {of} --pending-window-in-days 7 --region {region} "
    "--output json"
)
PRICES = "ultrascale prices {region} {file} --output {prices}"
MONEY = "ultrascale plan {file} --json --prices {prices}"
ACCEPT = (
    "ultrascale connect {file} -- ultrascale accept {file} --level all --grow --record --yes "
    "--budget {accept_usd} --prices {prices} --output {folder}/evidence-{time}"
)


@dataclass(frozen=True)
class Action:
    """An action; words of commands have ``{names}`` of the run."""

    name: str  # Its name
    needs: str = ""  # Actions that have to pass before
    commands: Sequence[str] = ()  # Its commands, in order
    fails: str = ""  # Command before them that has to end with a failed stack
    builds: bool = False  # Whether it builds the images of the file


DEPLOY = "ultrascale deploy {file} --yes"
ACTIONS: Sequence[Action] = (
    Action("identity"),
    Action("bootstrap", "identity", ["ultrascale cdk bootstrap aws://{account}/{region}"]),
    Action("baseline", "bootstrap"),
    Action("preflight", "baseline", ["ultrascale preflight {file} --record"]),
    Action("deploy", "preflight", [DEPLOY]),
    Action("images", "deploy", builds=True),
    Action("accept", "images", [ACCEPT]),
    Action("scale", "deploy", [f"ultrascale scale {{file}} work {n} --yes" for n in (1, 0)]),
    # EKS lacks the build of an add-on: CloudFormation rolls the update back.
    Action(
        "failed-deploy", "deploy", [DEPLOY], "ultrascale deploy {broken} --yes --skip-preflight"
    ),
    Action("upgrade", "accept failed-deploy", ["ultrascale deploy {upgraded} --yes"]),
)
CLEANUP = ("destroy", "inventory")
"""Actions that follow whatever happens."""


def with_needs(chosen: set[str]) -> Sequence[str]:
    """Return the chosen actions and those that they need, in order."""
    for action in reversed(ACTIONS):
        if action.name in chosen:
            chosen = chosen | {*action.needs.split()}
    return [action.name for action in ACTIONS if action.name in chosen]
