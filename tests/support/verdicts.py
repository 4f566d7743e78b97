"""Verdicts on files: the rule that speaks, its key and its severity, without the sentence."""

from collections.abc import Iterable

from ultrascale import config
from ultrascale.config import named, remarks
from ultrascale.errors import ConfigError, Diagnostic


def verdict(diagnostic: Diagnostic) -> str:
    """Return ``pools[train].zones: RULE``; warnings and notes have that word in front."""
    severity = "" if diagnostic.severity == "error" else f"{diagnostic.severity} "
    place = f"{diagnostic.key}: " if diagnostic.key else ""
    return f"{severity}{place}{diagnostic.code}"


def verdicts(diagnostics: Iterable[Diagnostic] | ConfigError) -> list[str]:
    if isinstance(diagnostics, ConfigError):
        diagnostics = diagnostics.diagnostics
    return [verdict(diagnostic) for diagnostic in diagnostics]


def warned_of(cluster: config.Cluster) -> list[str]:
    """Return the verdicts of the warnings on a cluster that its file alone shows."""
    return [
        f"warning {named(cluster, mistake.at)}: {mistake.code}"
        for mistake in remarks(cluster, "warning")
    ]
