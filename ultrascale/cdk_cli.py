"""The CDK's own command line, in the version that the project pins."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ultrascale.documents import text
from ultrascale.errors import UltrascaleError
from ultrascale.node import bundled_node

_PROJECT = Path(__file__).parent.parent
_PACKAGE = "aws-cdk"
# It finds the npm of the requirements, which need not be on anybody's PATH.
_INSTALL = "run `make synth` there, which installs it"


@dataclass(frozen=True, slots=True, kw_only=True)
class CdkCli:
    """The pinned CDK CLI of a project.

    Attributes:
        project: Folder of ``app.py`` and ``cdk.json``, in which it has to run.
        version: The version that is pinned and installed.
    """

    project: Path
    version: str

    @property
    def program(self) -> Path:
        """The program."""
        return self.project / "node_modules" / ".bin" / "cdk"

    def environment(self) -> Mapping[str, str]:
        """Return what it runs in: the bundled Node.js, and the Python of this process.

        On a terminal the CDK recommends the newest version of npm's tag `latest`, which is broken.
        """
        own = (str(bundled_node().parent), str(Path(sys.executable).parent))
        path = os.pathsep.join((*own, os.environ.get("PATH", os.defpath)))
        return {**os.environ, "PATH": path, "CDK_DISABLE_VERSION_CHECK": "1"}


def find_cdk_cli(project: Path | None = None) -> CdkCli:
    """Return the pinned CDK CLI of ``project``, or of the one that this module is of.

    Raises:
        UltrascaleError: The folder is no project, or holds no CDK CLI or another one. The npm tag
            ``aws-cdk@latest`` has pointed at a 3.0.0 that reads no assembly of aws-cdk-lib 2.
            Source: https://github.com/aws/aws-cdk/issues/38113
    """
    folder = _PROJECT if project is None else project
    wanted = folder / "package.json"
    if not all((folder / name).is_file() for name in ("app.py", "cdk.json", wanted.name)):
        raise UltrascaleError(
            f"{folder}: no project here, with its app.py and cdk.json; install it from a clone by "
            "`pip install -e .`, or use the clone's own .venv/bin/ultrascale"
        )
    pinned = text(_read(wanted), "devDependencies", _PACKAGE)
    installed = folder / "node_modules" / _PACKAGE / "package.json"
    if not installed.is_file():
        raise UltrascaleError(f"{folder}: the CDK CLI is not installed; {_INSTALL}")
    version = text(_read(installed), "version")
    if version != pinned:
        raise UltrascaleError(
            f"{folder}: the CDK CLI is {version}, and {pinned} is pinned; {_INSTALL}"
        )
    return CdkCli(project=folder, version=pinned)


def _read(path: Path) -> object:
    return json.loads(path.read_text(encoding="utf-8"))
