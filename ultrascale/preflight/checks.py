"""Every check of an account, in the order of the report."""

from ultrascale.preflight.model import Check

CHECKS: tuple[Check, ...] = ()
