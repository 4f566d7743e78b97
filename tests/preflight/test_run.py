"""All checks at once: each finding arrives, in order and in time, whatever AWS does."""

import threading
from collections.abc import Iterator

import pytest

from tests.support.account import make_context
from tests.support.fake_aws import THROTTLED, Told, denied
from ultrascale.findings import Finding
from ultrascale.preflight.model import Check, Context
from ultrascale.preflight.run import run_checks

VPCS = "ec2:DescribeVpcs"


def context(vpcs: Told | None = None) -> Context:
    return make_context({VPCS: vpcs or {"Vpcs": []}})


def found(check: str, subject: str = "it") -> Finding:
    return Finding(check=check, subject=subject, state="pass", evidence="there")


def asks(name: str) -> Check:
    def run(context: Context) -> Iterator[Finding]:
        yield found(name, "before")
        context.account.ask(context.account.client("ec2").describe_vpcs)
        yield found(name, "after")

    return Check(name=name, title="VPCs", actions=(VPCS,), run=run)


def waits(name: str, until: threading.Event) -> Check:
    def run(_: Context) -> Iterator[Finding]:
        yield found(name, "before")
        until.wait(5)

    return Check(name=name, title="something slow", actions=(), run=run)


def test_findings_stand_in_the_order_of_the_checks_whichever_is_first() -> None:
    other = threading.Event()

    def last(_: Context) -> Iterator[Finding]:
        other.set()
        yield found("b")

    through: list[str] = []
    checks = (waits("a", other), Check(name="b", title="b", actions=(), run=last), asks("c"))

    result = run_checks(checks, context(), progress=lambda check: through.append(check.name))

    assert [(each.check, each.subject) for each in result] == [
        ("a", "before"),
        ("b", "it"),
        ("c", "before"),
        ("c", "after"),
    ]
    assert sorted(through) == ["a", "b", "c"]


def test_what_is_not_answered_in_time_is_unknown_and_what_is_found_is_kept() -> None:
    never = threading.Event()

    result = run_checks((waits("slow", never), asks("quick")), context(), deadline=0.1)
    never.set()

    assert [(each.check, each.state) for each in result] == [
        ("slow", "pass"),
        ("slow", "unknown"),
        ("quick", "pass"),
        ("quick", "pass"),
    ]
    assert result[1].evidence == "no answer within 0.1 seconds"


def test_a_denied_call_is_unknown_with_the_statement_that_allows_it() -> None:
    result = run_checks((asks("a"), asks("b")), context(vpcs=denied(VPCS)))
    assert [each.state for each in result] == ["pass", "unknown"] * 2
    assert result[1].fix == (
        "allow it in a policy of who runs this: "
        '{"Effect": "Allow", "Action": "ec2:DescribeVpcs", "Resource": "*"}'
    )


def test_what_an_organization_denies_no_statement_allows() -> None:
    message = f"not authorized to perform: {VPCS} with an explicit deny in a service control policy"
    answer = denied(VPCS)
    answer.message = message
    (_, finding) = run_checks((asks("a"),), context(vpcs=answer))
    assert finding.fix is not None
    assert "no statement can allow it" in finding.fix
    assert finding.denied is None


def test_a_throttled_call_is_unknown_and_asks_for_no_permission() -> None:
    (_, finding) = run_checks((asks("a"),), context(vpcs=THROTTLED))
    assert (finding.state, finding.fix) == ("unknown", None)
    assert "throttled" in finding.evidence


def test_a_mistake_in_a_check_is_no_finding() -> None:
    def run(_: Context) -> Iterator[Finding]:
        raise ZeroDivisionError
        yield

    with pytest.raises(ZeroDivisionError):
        run_checks((Check(name="a", title="a", actions=(), run=run),), context())
