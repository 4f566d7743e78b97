"""Report of a cluster's needs: an HTML page, a text for a pull request, and a picture."""

from ultrascale.report.render import render_markdown, render_page, render_picture
from ultrascale.report.sections import Comparison

__all__ = ["Comparison", "render_markdown", "render_page", "render_picture"]
