"""Account and Region: the credentials belong to the file's account, whose Region is enabled."""

from collections.abc import Iterator

from ultrascale.preflight.model import Check, Context, Finding, State

_REGIONS = "ec2:DescribeRegions"
_ENABLED = frozenset({"opt-in-not-required", "opted-in"})
_NOT_ENABLED = "not-opted-in"


def _identity_findings(context: Context) -> Iterator[Finding]:
    yield _account(context)
    yield _region(context)


def _account(context: Context) -> Finding:
    account, wanted = context.account, context.plan.account
    evidence = f"{account.arn} of account {account.id}"
    if wanted is None:
        return _finding("account", "pass", f"{evidence}; the file names none")
    if wanted == account.id:
        return _finding("account", "pass", f"{evidence}, which the file names")
    fix = "name a profile of that account by --profile, or change `account` in the file"
    return _finding("account", "fail", f"{evidence}; the file names {wanted}", fix)


def _region(context: Context) -> Finding:
    region = context.plan.region
    regions = context.account.ask_all(
        context.account.client("ec2").describe_regions,
        lambda page: page["Regions"],
        AllRegions=True,
        RegionNames=[region],
    )
    status = next(
        (answer["OptInStatus"] for answer in regions if answer["RegionName"] == region), None
    )
    if status in _ENABLED:
        return _finding(region, "pass", f"enabled: {status}")
    fix = f"aws account enable-region --region-name {region}"
    if status == _NOT_ENABLED:
        return _finding(region, "fail", "the account has not enabled it", fix)
    said = "EC2 does not name it" if status is None else f"OptInStatus is {status}"
    return _finding(region, "unknown", said, f"unless the console shows it enabled: {fix}")


def _finding(subject: str, state: State, evidence: str, fix: str | None = None) -> Finding:
    return Finding(check=IDENTITY.name, subject=subject, state=state, evidence=evidence, fix=fix)


IDENTITY = Check(
    name="identity",
    title="account and Region",
    # No policy has to allow sts:GetCallerIdentity.
    actions=(_REGIONS,),
    run=_identity_findings,
)
