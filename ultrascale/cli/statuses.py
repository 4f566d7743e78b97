"""Exit statuses of commands; docs/command-line.md lists all of them."""

BEYOND = 2
"""No limit that AWS publishes allows the cluster."""
FAILED = 3
"""The account lacks something, or a check could not ask AWS."""
PROTECTED = 3
"""Something protected would go, or CloudFormation could not do the change."""
STACK_FAILED = 4
"""A stack failed."""
USAGE = 64
"""The command itself was written wrongly: `EX_USAGE` of sysexits(3)."""
INTERRUPTED = 130
"""Ctrl-C."""
