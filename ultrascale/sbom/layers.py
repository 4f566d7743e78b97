"""Programs in the archive of a Lambda layer, with the versions that they state themselves."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from zipfile import ZipFile

from ultrascale.documents import JsonObject, text
from ultrascale.sbom.model import Component

_ELF = b"\x7fELF"
# The Go linker writes a program's package and its module's version into it.
# Source: https://pkg.go.dev/runtime/debug#BuildInfo
_GO_MODULE = re.compile(rb"path\t[^\n]*?([^/\n]+)\nmod\t[^\t\n]+\tv(\d[^\t\n]*)[\t\n]")


def programs_of(body: JsonObject, folder: Path) -> Iterator[Component]:
    """Yield the Go programs of a layer; nothing where its archive has none, or is not there.

    What the layer's description says of them is written by hand, and was wrong.

    Args:
        body: The resource, an ``AWS::Lambda::LayerVersion``.
        folder: Folder of its template and archive.
    """
    archive = folder / f"asset.{text(body, 'Properties', 'Content', 'S3Key')}"
    if archive.is_file():
        for name, version in _programs(archive):
            yield Component(kind="Lambda layer", name=name, version=version)


# A layer is in the templates of several stacks, and its programs have 60 MB each.
@cache
def _programs(archive: Path) -> tuple[tuple[str, str], ...]:
    programs: list[tuple[str, str]] = []
    with ZipFile(archive) as files:
        for file in files.infolist():
            with files.open(file) as opened:
                if opened.read(len(_ELF)) != _ELF:
                    continue
                module = _GO_MODULE.search(opened.read())
            if module:
                name, version = (part.decode() for part in module.groups())
                programs.append((name, version))
    return tuple(programs)
