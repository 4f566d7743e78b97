"""Check of the account's CDK bootstrap stack and its version."""

from collections.abc import Iterator

from ultrascale.errors import UnansweredError
from ultrascale.preflight.model import Check, Context, Finding, State

_PARAMETER = "/cdk-bootstrap/hnb659fds/version"
"""Systems Manager parameter with the bootstrap stack's version, for the CDK's default qualifier."""

# aws-cdk-lib 2.275.0 writes it into an assembly as `requiresBootstrapStackVersion`.
# Source: https://github.com/aws/aws-cdk/blob/v2.275.0/packages/aws-cdk-lib/core/lib/stack-synthesizers/default-synthesizer.ts
_LEAST = 6
# Earlier versions let the role that uploads assets use a bucket with the assets' name in any
# account. Source: https://docs.aws.amazon.com/cdk/v2/guide/bootstrapping-env.html
_SAFE = 21


def _bootstrap_findings(context: Context) -> Iterator[Finding]:
    try:
        answer = context.account.ask(context.account.client("ssm").get_parameter, Name=_PARAMETER)
    except UnansweredError as error:
        if error.code != "ParameterNotFound":
            raise
        yield _finding(context, "fail", f"there is no parameter {_PARAMETER}")
        return
    text: str = answer["Parameter"]["Value"]
    if not (text.isascii() and text.isdigit()):
        yield _finding(context, "fail", f"{_PARAMETER} says {text!r}, which is no version")
    elif (version := int(text)) < _LEAST:
        yield _finding(context, "fail", f"version {version}; at least {_LEAST} is needed")
    elif version < _SAFE:
        evidence = (
            f"version {version} is enough; before {_SAFE}, assets may go to somebody else's bucket"
        )
        yield _finding(context, "warn", evidence)
    else:
        yield _finding(context, "pass", f"version {version}; at least {_LEAST} is needed")


def _finding(context: Context, state: State, evidence: str) -> Finding:
    account, region = context.account.id, context.plan.region
    return Finding(
        check=BOOTSTRAP.name,
        subject=f"aws://{account}/{region}",
        state=state,
        evidence=evidence,
        fix=None if state == "pass" else f"ultrascale cdk bootstrap aws://{account}/{region}",
    )


BOOTSTRAP = Check(
    name="bootstrap",
    title="CDK bootstrap",
    actions=("ssm:GetParameter",),
    run=_bootstrap_findings,
    resources={
        "ssm:GetParameter": "arn:{partition}:ssm:{region}:{account}:parameter/cdk-bootstrap/*"
    },
)
