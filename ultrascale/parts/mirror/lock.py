"""Digests of the copies in a mirror, which `ultrascale mirror FILE copy` records beside FILE.

A tag can be moved; a digest names one content. Manifests of a cluster with `images.mirror` name
each image by both.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import field

from ultrascale.documents import mapping, read_json
from ultrascale.errors import ConfigError
from ultrascale.frozen import Frozen

FILE = "mirror.lock"
"""Name of the record, beside the cluster files that use it."""

_DIGEST = re.compile("sha256:[0-9a-f]{64}")
_RENEW = "restore it from your repository, or delete it and run `ultrascale mirror FILE copy`"


class MirrorLock(Frozen):
    """The record of one folder."""

    # Digest of each reference, by its publisher's name, under the location of its mirror; a chart's
    # begins ``oci://``. Cluster files of one folder may name several mirrors.
    mirrors: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])

    def known_to(self, location: str) -> Mapping[str, str]:
        """Return the digests for copies into ``location``: its own before others'."""
        others = {
            name: digest for mirror in self.mirrors.values() for name, digest in mirror.items()
        }
        return {**others, **self.mirrors.get(location, {})}

    def with_copies(self, location: str, digests: Mapping[str, str]) -> "MirrorLock":
        """Return the record with more references in ``location``."""
        there = {**self.mirrors.get(location, {}), **digests}
        return MirrorLock(mirrors={**self.mirrors, location: there})


def read_mirror_lock(folder: Path | None) -> MirrorLock:
    """Return the record in ``folder``.

    Args:
        folder: Folder of a cluster file; None for a file given as text.

    Raises:
        ConfigError: It cannot be read, or holds a value that is no digest; a line for each.
    """
    if folder is None or not (folder / FILE).is_file():
        return MirrorLock()
    path = folder / FILE
    try:
        document: object = read_json(path)
    except (OSError, ValueError) as error:
        reason = str(error.strerror).lower() if isinstance(error, OSError) else "no JSON"
        raise ConfigError([f"{path}: cannot be read: {reason}; {_RENEW}"]) from None
    if "mirrors" not in mapping(document):
        raise ConfigError([f"{path}: not a record of ultrascale mirror; {_RENEW}"])
    mirrors = {
        location: {name: str(digest) for name, digest in mapping(digests).items()}
        for location, digests in mapping(document, "mirrors").items()
    }
    wrong = [
        f"{path}: {location}: {name}: no digest, got {digest!r}; {_RENEW}"
        for location, digests in mirrors.items()
        for name, digest in digests.items()
        if not _DIGEST.fullmatch(digest)
    ]
    if wrong:
        raise ConfigError(wrong)
    return MirrorLock(mirrors=mirrors)


def lock_text(lock: MirrorLock) -> str:
    """Return the content of a record."""
    return json.dumps({"mirrors": lock.mirrors}, indent=2, sort_keys=True) + "\n"
