"""The roles that are to get cluster administration: EKS takes only those that are there.

One that is not there, or whose path is left out, fails the stack of access entries once the cluster
is made.

Source: https://docs.aws.amazon.com/eks/latest/userguide/creating-access-entries.html
"""

from collections.abc import Iterator

from ultrascale.errors import UnansweredError
from ultrascale.preflight.model import Check, Context, Finding, State, unknown

_NAME = "admins"
_ACTION = "iam:GetRole"


def _run(context: Context) -> Iterator[Finding]:
    for arn in context.plan.control_plane.admins:
        if arn.split(":")[4] == context.account.id:
            yield _look(context, arn)
            continue
        evidence = f"of another account than {context.account.id}, which nobody can look into here"
        yield _finding(arn, "warn", evidence, f"run `{_command(arn)}` with credentials of its own")


def _look(context: Context, arn: str) -> Finding:
    try:
        there: str = context.account.ask(
            context.account.client("iam").get_role, RoleName=_role(arn)
        )["Role"]["Arn"]
    except UnansweredError as error:
        if error.code != "NoSuchEntity":
            return unknown(_NAME, arn, error)
        evidence = "there is no such role: EKS would refuse its access entry"
        return _finding(arn, "fail", evidence, "write one that `aws iam list-roles` lists")
    if there != arn:
        # IAM finds a role by its name alone. Those of IAM Identity Center have a path.
        evidence = f"its ARN is {there} in the account: EKS would refuse an access entry of another"
        return _finding(arn, "fail", evidence, f"write {there} in kubernetes.admins")
    return _finding(arn, "pass", "it is there")


def _role(arn: str) -> str:
    return arn.rpartition("/")[2]


def _command(arn: str) -> str:
    return f"aws iam get-role --role-name {_role(arn)}"


def _finding(arn: str, state: State, evidence: str, fix: str | None = None) -> Finding:
    return Finding(check=_NAME, subject=arn, state=state, evidence=evidence, fix=fix)


ADMINS = Check(
    name=_NAME,
    title="roles of the cluster's administrators",
    actions=(_ACTION,),
    run=_run,
    resources={_ACTION: "arn:{partition}:iam::{account}:role/*"},
)
