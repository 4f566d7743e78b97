"""The platform: the manifests of ``dist/``, and placeholders in them, applied to the cluster."""

import re
from collections.abc import Mapping, Sequence

from aws_cdk import CfnOutput, Stack

from ultrascale.plan.stacks import StackName
from ultrascale_constructs.platform import Manifest, ManifestApplier
from ultrascale_k8s import PlatformChart
from ultrascale_stacks.cluster import ClusterStacks, LayerStack

# --- Placeholders: names in manifests for values that only deployed stacks know -------------------


_PLACEHOLDER = re.compile(r"\$\{[A-Z0-9_]+\}")


def fill(manifest: Manifest, placeholders: Mapping[str, str]) -> Manifest:
    """Replace every placeholder by its value; other words in ``${}`` stay unchanged."""
    return {key: _filled_value(value, placeholders) for key, value in manifest.items()}


def export(stack: Stack, placeholders: Mapping[str, str]) -> None:
    """Export the values of placeholders from ``stack``, and show them as its outputs.

    All values are exported, used or not: CloudFormation would have to delete an unused export
    before it applies the change of the last manifest that uses it, and refuses that.
    """
    for placeholder, value in placeholders.items():
        stack.export_value(value)
        show(stack, _pascal(placeholder), placeholder, value)


def show(stack: Stack, id: str, placeholder: str, value: str) -> None:
    """Show the value of a placeholder as an output of ``stack``."""
    CfnOutput(stack, id, value=value, description=f"{placeholder} in the manifests")


def _pascal(placeholder: str) -> str:
    return "".join(word.capitalize() for word in placeholder.strip("${}").split("_"))


def _filled_value(value: object, placeholders: Mapping[str, str]) -> object:
    match value:
        case str():
            return _PLACEHOLDER.sub(lambda found: placeholders.get(found[0], found[0]), value)
        case Mapping():
            return {key: _filled_value(item, placeholders) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case list():
            return [_filled_value(item, placeholders) for item in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case _:
            return value


# --- The platform: the stack that applies the manifests of ``dist/`` to the cluster ---------------


class PlatformStack(LayerStack):
    """Stack that applies the charts one after the other, through a kubectl provider of its own."""

    def __init__(
        self,
        cluster: ClusterStacks,
        name: StackName,
        *,
        charts: Sequence[PlatformChart],
        placeholders: Mapping[str, str],
    ) -> None:
        super().__init__(cluster, name)
        manifests = ManifestApplier(self, "Manifests", cluster=cluster.context)
        for chart in charts:
            manifests.apply(
                chart.name,
                [fill(manifest, placeholders) for manifest in chart.manifests],
                retain=chart.retained,
            )
