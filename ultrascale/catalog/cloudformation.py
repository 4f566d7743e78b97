"""Limits of CloudFormation, which no request raises but where it says so.

Source: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
"""

RESOURCES_PER_STACK = 500
OUTPUTS_PER_STACK = 200

STACKS = 2_000
"""Stacks of an account in a Region, as the quota stands before it is raised."""

TEMPLATE_BYTES = 1_000_000
"""Bytes of a template, 1 MB."""
