"""Limits of CloudFormation; a limit is fixed unless its text calls it a quota.

Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
"""

RESOURCES_PER_STACK = 500
OUTPUTS_PER_STACK = 200

STACKS = 2_000
"""Most stacks of an account in a Region: a quota, before AWS raises it."""

TEMPLATE_BYTES = 1_000_000
"""Most bytes of a template."""
