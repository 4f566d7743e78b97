"""Helm charts that stacks install."""

from collections.abc import Set

from ultrascale.core.table import all_parts
from ultrascale.documents import text
from ultrascale.guard.judging import GOING, Context, program_stops, sides
from ultrascale.guard.model import Change, Harm
from ultrascale.guard.properties import version_numbers


def chart_goes(change: Change, context: Context) -> Harm | None:
    """Judge a chart whose release the change uninstalls."""
    if change.action not in GOING:
        return None
    return program_stops(f"Helm's release {text(context.old(change), 'Release')}")


def chart_goes_back(change: Change, context: Context) -> Harm | None:
    """Judge an older minor version of a chart: its CRDs may lack fields of the stored objects."""
    versions = (version_numbers(side.get("Version")) for side in sides(change, context))
    before, after = (numbers[:2] for numbers in versions)
    if change.action != "updated" or not after or after >= before:
        return None
    return Harm(
        verdict="cannot be deployed",
        lost="objects that the newer version wrote: the older definitions of their kinds may "
        "refuse them, and its controllers misread them",
        instead="stay with this version, or go back by the steps of its upgrade guide, and name it",
    )


def chart_changes_definitions(change: Change, context: Context) -> Harm | None:
    """Judge a new version of a chart whose CRDs Helm installs only once.

    Source: https://helm.sh/docs/chart_best_practices/custom_resource_definitions/
    """
    before, after = sides(change, context)
    version = text(after, "Version")
    if change.action != "updated" or text(before, "Repository") not in _charts_that_define_once():
        return None
    if not version or version == text(before, "Version"):
        return None
    return Harm(
        verdict="cannot be deployed",
        lost="fields that the other version reads: Helm leaves the definitions of its kinds as "
        "they are",
        instead="bring them first, `helm show crds "
        f"{text(after, 'Repository')} --version {version} | kubectl apply --server-side "
        "--force-conflicts -f -`, and name it then",
    )


def _charts_that_define_once() -> Set[str]:
    """Return the locations of charts with CRDs in their folder `crds`."""
    charts = (chart for part in all_parts() for chart in part.charts)
    # Karpenter's CRDs are a chart of their own.
    return frozenset(chart.location for chart in charts if chart.defines_once)
