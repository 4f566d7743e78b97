"""Fetches an archive of tokenized shards and unpacks it.

An interrupted download or unpacking goes on where it stopped, and the directory is a dataset only
at the end. Only regular files with the names of shards are unpacked, all into one directory, so
that no entry can reach another place.
"""

import http.client
import logging
import shutil
import tarfile
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import IO

from ultrascale_bert.shards import (
    HDF5_SUFFIXES,
    INDEX,
    Index,
    MadeBy,
    index_hdf5,
    parse_index,
    write_index,
)
from ultrascale_training.errors import TrainingError

_log = logging.getLogger("ultrascale_bert")
_ARCHIVE = ".archive.tar"
_ATTEMPTS = 6
_CHUNK = 1 << 22
_TIMEOUT_SECONDS = 60


def url_of(source: str) -> str:
    """Return the address of ``source``: a public object ``s3://bucket/key``, or an https URL.

    Raises:
        TrainingError: It is neither.
    """
    parts = urllib.parse.urlsplit(source)
    if parts.scheme == "s3" and parts.netloc and parts.path.strip("/"):
        # Public objects need no signature, so no AWS library is needed either.
        return f"https://{parts.netloc}.s3.amazonaws.com{urllib.parse.quote(parts.path)}"
    if parts.scheme == "https" or (parts.scheme == "http" and parts.hostname == "127.0.0.1"):
        return source
    raise TrainingError(f"--from: must be s3://bucket/key or https://…, got {source!r}")


def fetch(source: str, directory: Path, *, made_by: MadeBy) -> Index:
    """Download and unpack ``source`` into ``directory`` and return its index.

    Raises:
        TrainingError: It cannot be downloaded, or holds no shards.
    """
    directory.mkdir(parents=True, exist_ok=True)
    archive = directory / _ARCHIVE
    if not archive.exists():
        partial = archive.with_suffix(".partial")
        _download(url_of(source), partial)
        partial.replace(archive)
    index = _unpack(archive, directory) or index_hdf5(directory)
    index = replace(index, made_by=made_by)
    write_index(directory, index)
    tidy(directory)
    return index


def tidy(directory: Path) -> None:
    """Delete the archive of a complete dataset."""
    (directory / _ARCHIVE).unlink(missing_ok=True)


def _download(url: str, partial: Path) -> None:
    why = ""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            _append(url, partial)
        except urllib.error.HTTPError as error:
            with error:
                if error.code < 500:
                    raise TrainingError(
                        f"--from: the server answers {error.code} {error.reason}, got {url!r}; "
                        "only public objects can be fetched"
                    ) from None
            why = str(error)
        except (OSError, http.client.HTTPException) as error:
            why = str(error)
        else:
            return
        _log.warning("download stopped (attempt %d of %d): %s", attempt, _ATTEMPTS, why)
        if attempt < _ATTEMPTS:
            time.sleep(min(30, 2 ** (attempt - 1) / 2))
    raise TrainingError(
        f"--from: gave up after {_ATTEMPTS} attempts ({why}); run it again to go on"
    )


def _append(url: str, partial: Path) -> None:
    """Fetch the rest of ``partial``; all of it if the object has changed meanwhile."""
    tag = partial.with_suffix(".etag")
    have = partial.stat().st_size if partial.exists() and tag.exists() else 0
    headers = {"Range": f"bytes={have}-", "If-Range": tag.read_text()} if have else {}
    request = urllib.request.Request(url, headers=headers)
    try:
        answer = urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        # Nothing is left to fetch. https://www.rfc-editor.org/rfc/rfc9110#status.416
        if error.code == 416 and error.headers["Content-Range"] == f"bytes */{have}":
            error.close()
            return
        raise
    with answer, partial.open("ab" if answer.status == 206 else "wb") as file:
        if answer.status != 206:
            have = 0
            tag.write_text(answer.headers["ETag"] or "")
        total = have + int(answer.headers["Content-Length"])
        shutil.copyfileobj(answer, file, _CHUNK)
    if partial.stat().st_size != total:
        raise ConnectionError(f"{partial.stat().st_size} of {total} bytes came")
    tag.unlink()


def _unpack(archive: Path, directory: Path) -> Index | None:
    """Unpack the shards; return the archive's index if it holds one, as ours do."""
    index: Index | None = None
    seen: set[str] = set()
    try:
        with tarfile.open(archive, "r|*") as tar:
            for member in tar:
                path = PurePosixPath(member.name)
                if path.is_absolute() or ".." in path.parts:
                    raise TrainingError(
                        f"--from: the archive has an entry outside of it, got {member.name!r}; "
                        "do not use this archive"
                    )
                if not member.isfile() or path.name.startswith("."):
                    continue
                content = tar.extractfile(member)
                if content is None or path.suffix not in (*HDF5_SUFFIXES, ".npy", ".json"):
                    continue
                if path.name in seen:
                    raise TrainingError(
                        f"--from: two entries of the archive are named {path.name!r}; "
                        "keep one dataset in an archive"
                    )
                seen.add(path.name)
                if path.name == INDEX:
                    index = parse_index(content.read().decode(), source=member.name)
                elif path.suffix != ".json":
                    _write(content, directory / path.name, member.size)
    except tarfile.ReadError as error:
        archive.unlink()
        raise TrainingError(f"--from: not a tar archive ({error}); name another one") from None
    if not seen:
        raise TrainingError("--from: the archive holds no shards; name another one")
    return index


def _write(content: IO[bytes], to: Path, size: int) -> None:
    if to.exists() and to.stat().st_size == size:
        return
    partial = to.with_name(f".{to.name}.partial")
    with partial.open("wb") as file:
        shutil.copyfileobj(content, file, _CHUNK)
    partial.replace(to)
