"""The product as its users have it: installed from a wheel, in an environment of its own."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from email.parser import Parser
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from tests.support.folders import ROOT
from ultrascale.config._document import is_list, is_mapping

# Programs that the product, npm or a shell may call; no Python, Node.js or CDK CLI among them.
_PROGRAMS = (
    *("sh", "bash", "env", "uname", "dirname", "basename", "sed", "cat", "mkdir", "rm", "git"),
    "setpriv",
)


@dataclass(frozen=True, kw_only=True)
class Installed:
    """An environment with the product, and a home of its own."""

    folder: Path  # The virtual environment
    home: Path  # Home folder of its user, with the caches
    # Further variables of the environment
    settings: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def program(self) -> Path:
        """The command line."""
        return self.folder / "bin" / "ultrascale"

    @property
    def python(self) -> Path:
        """The interpreter."""
        return self.folder / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        """The folder of the libraries."""
        (found,) = (self.folder / "lib").glob("python*/site-packages")
        return found

    def environment(self) -> dict[str, str]:
        """Return the variables of a program: nothing of the checkout, and no environment active."""
        own = {"HOME": str(self.home), "PATH": str(self.home / "bin"), "LANG": "C.UTF-8"}
        kept = ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS")
        proxies = {name: os.environ[name] for name in kept if name in os.environ}
        return {**proxies, **own, **self.settings}

    def run(
        self,
        *arguments: str | Path,
        cwd: Path,
        status: int | None = 0,
        under: Sequence[str] = (),
        stdin: str | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run the command line as `uvx` and `pipx` do, with nothing of it on the PATH.

        Args:
            arguments: Its arguments; beginning with a path: another program.
            cwd: The folder that it runs in.
            status: The status that it has to end with; None: any.
            under: A program that runs it, with its arguments.
            stdin: What it reads.
        """
        own = () if isinstance(arguments[0], Path) else (self.program,)
        command = [*under, *own, *arguments]
        done = subprocess.run(
            command,
            cwd=cwd,
            env=self.environment(),
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        if status is not None and done.returncode != status:
            said = f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
            raise AssertionError(f"{command} ended with {done.returncode}:\n{said}")
        return done


def uv(*arguments: str | Path, cwd: Path = ROOT, settings: Mapping[str, str] | None = None) -> None:
    """Run uv, which makes environments in seconds.

    Args:
        arguments: Its arguments.
        cwd: The folder that it runs in.
        settings: Further variables of its environment.

    Raises:
        AssertionError: It failed; with what it said.
    """
    program = Path(sys.executable).with_name("uv")
    done = subprocess.run(
        [program, *arguments],
        cwd=cwd,
        env={**os.environ, **(settings or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"uv {arguments}:\n{done.stderr}"


def build_wheel(folder: Path) -> Path:
    """Build the wheel of the checkout into ``folder``."""
    uv("build", "--quiet", "--wheel", "--out-dir", folder, ROOT)
    (wheel,) = folder.glob("*.whl")
    return wheel


def dependencies_of(wheel: Path) -> Sequence[str]:
    """Return what a wheel needs to synthesize, without its other extras."""
    with ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(archive.read(name).decode())
    found = metadata.get_all("Requires-Dist", [])
    synthesis = (each.removesuffix("; extra == 'synth'") for each in found)
    return [each for each in synthesis if "extra ==" not in each]


def install(folder: Path, *requirements: str | Path, resolution: str = "highest") -> Installed:
    """Make an environment with ``requirements``.

    Args:
        folder: An empty folder, for the environment and the home of its user.
        requirements: What to install.
        resolution: Which versions of direct dependencies: ``highest``, or ``lowest-direct``.
    """
    uv("venv", "--quiet", "--python", sys.executable, folder / "venv")
    uv(
        *("pip", "install", "--quiet", "--python", folder / "venv", "--resolution", resolution),
        *requirements,
    )
    home = folder / "home"
    make_home(home)
    return Installed(folder=folder / "venv", home=home)


def make_home(home: Path) -> None:
    """Make a home with a few programs of the system; Node.js and the CDK CLI are not among them."""
    (home / "bin").mkdir(parents=True)
    for name in _PROGRAMS:
        if found := shutil.which(name, path="/usr/bin:/bin"):
            (home / "bin" / name).symlink_to(found)


def templates_of(folder: Path) -> dict[str, Any]:
    """Return the templates of an assembly without `Metadata`, which names its own folder."""
    return {
        path.name: _without_metadata(json.loads(path.read_text()))
        for path in sorted(folder.glob("*.template.json"))
    }


def _without_metadata(template: Any) -> Any:
    if is_mapping(template):
        kept = {key: value for key, value in template.items() if key != "Metadata"}
        return {key: _without_metadata(value) for key, value in kept.items()}
    if is_list(template):
        return [_without_metadata(value) for value in template]
    return template


def files_in(folder: Path) -> dict[str, bytes]:
    """Return all files below ``folder``, by their paths in it."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}
