"""Limits of CloudFormation, fixed unless their text names a quota.

Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
"""

RESOURCES_PER_STACK = 500
OUTPUTS_PER_STACK = 200

STACKS = 2_000
"""Stacks of an account in a Region: a quota, before AWS raises it."""

TEMPLATE_BYTES = 1_000_000
"""Bytes of a template, 1 MB."""
