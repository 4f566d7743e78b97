"""Findings that are accepted, each with its reason, beside the construct that causes them."""

from collections.abc import Mapping

from aws_cdk import Acknowledgment, Validations
from constructs import Construct

_MANAGED_POLICY = "AwsSolutions::AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/{}]"


def acknowledge(construct: Construct, reasons: Mapping[str, str]) -> None:
    """Accept findings in ``construct`` and below it.

    Args:
        construct: Where the findings arise.
        reasons: Finding id, exactly as synthesis prints it, and why it is accepted.
    """
    Validations.of(construct).acknowledge(
        *(Acknowledgment(id=id, reason=reason) for id, reason in reasons.items())
    )


def acknowledge_managed_policies(construct: Construct, reasons: Mapping[str, str]) -> None:
    """Accept AWS managed policies in ``construct`` and below it.

    Args:
        construct: Where the roles are.
        reasons: Name of the policy with its path, and why it is accepted.
    """
    acknowledge(
        construct, {_MANAGED_POLICY.format(name): reason for name, reason in reasons.items()}
    )
