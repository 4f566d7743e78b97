"""The permissions boundary that a file names: no stack with a role can be made before it is there.

Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/access_policies_boundaries.html
"""

from collections.abc import Iterator

from ultrascale.errors import UnansweredError
from ultrascale.preflight.model import Check, Context, Finding, State, unknown

_NAME = "boundary"
_ACTION = "iam:GetPolicy"


def _run(context: Context) -> Iterator[Finding]:
    name = context.plan.permissions_boundary
    if name is None:
        return
    arn = f"arn:{context.plan.partition}:iam::{context.account.id}:policy/{name}"
    try:
        policy = context.account.ask(context.account.client("iam").get_policy, PolicyArn=arn)[
            "Policy"
        ]
    except UnansweredError as error:
        if error.code != "NoSuchEntity":
            yield unknown(_NAME, arn, error)
            return
        evidence = "there is no such policy: IAM would make no role with it as its boundary"
        fix = "make it: `ultrascale bootstrap-policy FILE` writes it, and prints the command"
        yield _finding(arn, "fail", evidence, fix)
        return
    if not policy.get("IsAttachable", True):
        evidence = "IAM attaches it to nothing"
        yield _finding(arn, "fail", evidence, "name another policy in permissions_boundary")
        return
    yield _finding(arn, "pass", "it is there")


def _finding(arn: str, state: State, evidence: str, fix: str | None = None) -> Finding:
    return Finding(check=_NAME, subject=arn, state=state, evidence=evidence, fix=fix)


BOUNDARY = Check(
    name=_NAME,
    title="permissions boundary of the roles",
    actions=(_ACTION,),
    run=_run,
    resources={_ACTION: "arn:{partition}:iam::{account}:policy/*"},
)
