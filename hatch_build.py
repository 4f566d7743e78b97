"""The parts of the package that its build computes: entry points, and files from outside it."""

# hatchling is installed only while the package is built.
# pyright: reportMissingImports=false, reportUntypedBaseClass=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface


class Metadata(MetadataHookInterface):
    """Adds TorchX's named resources, and the extra of the tested versions."""

    def update(self, metadata: dict[str, object]) -> None:
        """Set entry points and extras: those of `pyproject.toml`, and the computed ones."""
        with _importable(self.root):
            from ultrascale.catalog.torchx import named_resources
        metadata["entry-points"] = {
            **self.config["entry-points"],
            "torchx.named_resources": dict(named_resources()),
        }
        metadata["optional-dependencies"] = {
            **self.config["optional-dependencies"],
            "tested": [*_pins(Path(self.root) / "requirements.txt")],
        }


class Resources(BuildHookInterface):
    """Puts images, charts, jobs and pins into the wheel, where `ultrascale.resources` finds them.

    An editable install finds them in the checkout: there a copy would go stale.
    """

    def initialize(self, version: str, build_data: dict[str, dict[str, str]]) -> None:
        """Name the files of the wheel; ``version`` is `standard` or `editable`.

        Raises:
            FileNotFoundError: One of `SHIPPED` is missing.
        """
        if version == "editable":
            return
        with _importable(self.root):
            from ultrascale.resources import SHIPPED, files
        root = Path(self.root)
        for name in SHIPPED:
            for file in files(root / name):
                path = file.relative_to(root).as_posix()
                build_data["force_include"][str(file)] = f"ultrascale/_resources/{path}"


def _pins(lock: Path) -> Iterator[str]:
    """Yield the libraries of a lock with their versions."""
    for line in lock.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith(("#", "-")):
            yield line


@contextmanager
def _importable(root: str) -> Generator[None]:
    sys.path.insert(0, root)
    try:
        yield
    finally:
        sys.path.remove(root)
