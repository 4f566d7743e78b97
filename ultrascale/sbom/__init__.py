"""Bill of materials of a synthesized cluster: images, charts, add-ons, runtimes, packages."""

from ultrascale.sbom.components import list_app, list_components
from ultrascale.sbom.cyclonedx import bill_of_materials
from ultrascale.sbom.model import Component

__all__ = ["Component", "bill_of_materials", "list_app", "list_components"]
