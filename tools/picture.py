"""The picture of the README: the topology of the Trainium example, `make picture`."""

from pathlib import Path

from ultrascale import plan
from ultrascale.plan.needs.report import plan_needs
from ultrascale.report import render_picture

_ROOT = Path(__file__).parent.parent
PICTURE = _ROOT / "docs" / "pictures" / "topology.svg"


def picture() -> str:
    """Return the picture, as SVG."""
    return render_picture(plan_needs(plan.load(_ROOT / "clusters" / "trainium-bert.yaml")))


if __name__ == "__main__":
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture(), encoding="utf-8")
