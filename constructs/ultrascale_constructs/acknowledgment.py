"""Accepted findings of cdk-nag and CloudFormation, each with the reason."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from aws_cdk import Acknowledgment, Stack, Token, Validations
from constructs import Construct

_WILDCARD = "AwsSolutions::AwsSolutions-IAM5[Resource::{}]"
_MANAGED_POLICY = "AwsSolutions::AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/{}]"
_ACCEPTED = ContextVar("findings are accepted", default=True)


@contextmanager
def nothing_accepted() -> Generator[None]:
    """Accept no finding within a ``with`` block: in another app, its owner accepts findings."""
    before = _ACCEPTED.set(False)
    try:
        yield
    finally:
        _ACCEPTED.reset(before)


def acknowledge(construct: Construct, reasons: Mapping[str, str]) -> None:
    """Accept findings in ``construct`` and below it.

    Args:
        construct: Construct with the findings.
        reasons: Finding id, exactly as synthesis prints it, and why it is accepted.
    """
    if not _ACCEPTED.get():
        return
    Validations.of(construct).acknowledge(
        *(Acknowledgment(id=id, reason=reason) for id, reason in reasons.items())
    )


def acknowledge_wildcards(construct: Construct, reasons: Mapping[str, str]) -> None:
    """Accept that policies in ``construct`` and below it name resources by a pattern.

    Args:
        construct: Construct with the policies.
        reasons: Resource, exactly as the finding shows it, and why it is accepted.
    """
    acknowledge(construct, {_WILDCARD.format(name): reason for name, reason in reasons.items()})


def shown_account(stack: Stack) -> str:
    """Return the account as a finding shows it; a stack without an account shows a reference."""
    return "<AWS::AccountId>" if Token.is_unresolved(stack.account) else stack.account


def acknowledge_managed_policies(construct: Construct, reasons: Mapping[str, str]) -> None:
    """Accept AWS managed policies in ``construct`` and below it.

    Args:
        construct: Construct with the roles.
        reasons: Name of the policy with its path, and why it is accepted.
    """
    acknowledge(
        construct, {_MANAGED_POLICY.format(name): reason for name, reason in reasons.items()}
    )
