"""Entry points that the build of the package computes from the catalog."""

# hatchling is installed only while the package is built.
# pyright: reportMissingImports=false, reportUntypedBaseClass=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

import sys
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface


class EntryPoints(MetadataHookInterface):
    """Adds the entry points of TorchX, whose named resources follow from the catalog's types."""

    def update(self, metadata: dict[str, object]) -> None:
        """Set the entry points: the static ones of `pyproject.toml`, and the named resources."""
        sys.path.insert(0, str(Path(self.root)))
        try:
            from ultrascale.catalog.torchx import named_resources
        finally:
            del sys.path[0]
        metadata["entry-points"] = {
            **self.config["entry-points"],
            "torchx.named_resources": dict(named_resources()),
        }
