"""Report of a cluster: a page, the text of a pull request, and a picture, drawn from its needs."""

from ultrascale.report.changes import Comparison
from ultrascale.report.render import render_markdown, render_page, render_picture

__all__ = ["Comparison", "render_markdown", "render_page", "render_picture"]
