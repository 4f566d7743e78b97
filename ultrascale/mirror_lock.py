"""Digests of the copies in a mirror, which `ultrascale mirror FILE copy` records beside FILE.

A tag can be moved; a digest names one content. Manifests of a cluster with `images.mirror` name
each image by both.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ultrascale.documents import mapping
from ultrascale.errors import ConfigError

FILE = "mirror.lock"
"""Name of the record, beside the cluster files that use it."""

_DIGEST = re.compile("sha256:[0-9a-f]{64}")
_RENEW = "restore it from your repository, or delete it and run `ultrascale mirror FILE copy`"


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorLock:
    """The record of one folder.

    Attributes:
        digests: Digest of each reference, as its publisher names it; a chart's begins ``oci://``.
        is_there: Whether there is a record.
    """

    digests: Mapping[str, str] = field(default_factory=dict[str, str])
    is_there: bool = False


def read_mirror_lock(folder: Path | None) -> MirrorLock:
    """Return the record in ``folder``.

    Args:
        folder: Folder of a cluster file; None for a file that is at hand as text.

    Raises:
        ConfigError: It cannot be read, or holds what is no digest; a line for each.
    """
    if folder is None or not (folder / FILE).is_file():
        return MirrorLock()
    path = folder / FILE
    try:
        document: object = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = str(error.strerror).lower() if isinstance(error, OSError) else "no JSON"
        raise ConfigError([f"{path}: cannot be read: {reason}; {_RENEW}"]) from None
    if "digests" not in mapping(document):
        raise ConfigError([f"{path}: not a record of ultrascale mirror; {_RENEW}"])
    digests = {name: str(digest) for name, digest in mapping(document, "digests").items()}
    if wrong := [name for name, digest in digests.items() if not _DIGEST.fullmatch(digest)]:
        lines = (f"{path}: {name}: no digest, got {digests[name]!r}; {_RENEW}" for name in wrong)
        raise ConfigError(lines)
    return MirrorLock(digests=digests, is_there=True)


def lock_text(digests: Mapping[str, str]) -> str:
    """Return the content of a record."""
    return json.dumps({"digests": dict(sorted(digests.items()))}, indent=2) + "\n"
