"""Checks of an AWS account against a cluster file. Nothing here changes anything."""

from ultrascale.preflight.checks import CHECKS
from ultrascale.preflight.model import Check, Context, Finding
from ultrascale.preflight.policy import policy
from ultrascale.preflight.run import run_checks

__all__ = ["CHECKS", "Check", "Context", "Finding", "policy", "run_checks"]
