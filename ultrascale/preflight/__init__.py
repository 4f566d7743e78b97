"""Checks of an AWS account against a cluster file; they change nothing."""

from ultrascale.preflight.checks import all_checks
from ultrascale.preflight.model import Check, Context
from ultrascale.preflight.policy import policy
from ultrascale.preflight.run import Progress, Verdict, check, read_context, run_checks

__all__ = [
    "Check",
    "Context",
    "Progress",
    "Verdict",
    "all_checks",
    "check",
    "policy",
    "read_context",
    "run_checks",
]
