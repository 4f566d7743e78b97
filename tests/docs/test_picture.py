"""The picture of the README."""

from xml.etree import ElementTree as ET

from tools.picture import PICTURE, picture

_NAMESPACE = "{http://www.w3.org/2000/svg}"


def test_the_picture_shows_the_example_as_it_is() -> None:
    assert PICTURE.read_text(encoding="utf-8") == picture(), "run `make picture`"


def test_the_picture_is_svg_that_loads_nothing_and_knows_light_and_dark() -> None:
    """A page shows it as an image, which has no style sheet but its own."""
    root = ET.fromstring(picture())

    assert root.tag == f"{_NAMESPACE}svg"
    assert {element.tag.removeprefix(_NAMESPACE) for element in root.iter()} <= {
        *("svg", "title", "desc", "style", "defs", "pattern"),
        *("path", "rect", "line", "text", "tspan"),
    }
    style = root.findtext(f"{_NAMESPACE}style") or ""
    assert "prefers-color-scheme:dark" in style
    assert "url(" not in style
    assert "http" not in picture().replace("http://www.w3.org/2000/svg", "")
