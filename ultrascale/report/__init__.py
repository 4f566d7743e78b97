"""Report of a cluster: a page, the text of a pull request, and a picture, drawn from its needs."""

from ultrascale.plan.model import ClusterNeeds
from ultrascale.report.changes import Comparison
from ultrascale.report.markdown import render_markdown
from ultrascale.report.page import render_page
from ultrascale.report.style import DRAWING_STYLE
from ultrascale.report.topology import WIDTHS, draw_topology

__all__ = ["Comparison", "render_markdown", "render_page", "render_picture"]


def render_picture(needs: ClusterNeeds) -> str:
    """Return the topology of a cluster as a file of SVG that stands alone."""
    return draw_topology(needs, "topology", WIDTHS["wide"], style=DRAWING_STYLE) + "\n"
