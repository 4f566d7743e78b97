"""Files of the product that the image of the backend holds, as they are."""

import re
from pathlib import Path

from ultrascale.errors import UltrascaleError
from ultrascale.resources import resource

# Sources of builds. The Dockerfiles among them are data where the build has copies for the mirror.
_SOURCES = re.compile(r"(?:^|/)asset\.[0-9a-f]+/(?P<path>(?P<top>ultrascale|backend|images)/.+)$")
_COPIES = "mirrored"


def is_own(path: Path) -> bool:
    """Return whether a file is, byte by byte, one of the product's own that is only packed.

    Its tables name the pages that its facts come from. The backend connects to the API server, to
    its database, and to the issuer that the cluster file names, which its settings hold.

    Args:
        path: A file of a synthesized assembly.
    """
    found = _SOURCES.search(path.as_posix())
    if found is None or path.is_symlink():
        return False
    root = Path(path.as_posix().removesuffix(found["path"]))
    if found["top"] == "images" and not (root / _COPIES).is_dir():
        return False
    try:
        return resource(found["path"]).read_bytes() == path.read_bytes()
    except (UltrascaleError, OSError):
        return False
