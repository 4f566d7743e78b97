"""The running release of this product."""

from pathlib import Path

PRODUCT = "ultrascale"
VERSION = "0.1.0"
"""Version of this product, as PEP 440 writes it. The build of the package reads it here."""


def source_folder() -> Path | None:
    """Return the folder of the clone that this product runs from; None for an installed package."""
    folder = Path(__file__).parent.parent
    is_clone = (folder / "pyproject.toml").is_file() and (folder / "app.py").is_file()
    return folder if is_clone else None
