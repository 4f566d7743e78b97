"""What a synthesized cluster consists of: images, charts, add-ons, machine images, runtimes."""

from ultrascale.sbom.components import list_components, list_pipeline
from ultrascale.sbom.cyclonedx import bill_of_materials
from ultrascale.sbom.model import Component

__all__ = ["Component", "bill_of_materials", "list_components", "list_pipeline"]
