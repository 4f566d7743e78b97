"""Bill of materials of a synthesized cluster: images, charts, add-ons, runtimes, packages."""

from ultrascale.sbom.components import list_components, list_pipeline
from ultrascale.sbom.cyclonedx import bill_of_materials
from ultrascale.sbom.model import Component

__all__ = ["Component", "bill_of_materials", "list_components", "list_pipeline"]
