"""Exit statuses of commands; docs/command-line.md lists all statuses."""

BEYOND = 2
"""No limit that AWS publishes allows the cluster."""
FAILED = 3
"""The account does not fit the cluster, or a check could not ask AWS."""
PROTECTED = 3
"""A protected resource would go, or CloudFormation could not make the change."""
STACK_FAILED = 4
"""A stack failed."""
USAGE = 64
"""The command line itself is wrong: `EX_USAGE` of sysexits(3)."""
INTERRUPTED = 130
"""Ctrl-C."""
