"""Manifest of a checkpoint: its step, its files and the SHA-256 of each.

The manifest is written last, so a checkpoint with a manifest is complete. It contains its own sum:
otherwise a flipped bit could change the step, or a sum, and look like good data.

SHA-256, not a shorter sum: hashlib computes it at 0.5 to 2 GB a second on one core, outside
Python's lock and in parallel with the training; a worker's share of a file system is slower.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

MANIFEST = "checkpoint.json"
_EARLIER = "it was written by an earlier release of the training image"


@dataclass(frozen=True, kw_only=True)
class FileSum:
    """Size and SHA-256 of a file, as they were written."""

    bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Content of a checkpoint."""

    step: int  # Steps that are done
    about: Mapping[str, Any]  # Notes of the run beside its tensors; JSON
    files: Mapping[str, FileSum]  # Sums by name within the checkpoint

    @property
    def bytes(self) -> int:
        """Size of the checkpoint."""
        return sum(file.bytes for file in self.files.values())


class DamagedManifestError(Exception):
    """Error: a manifest cannot be read, or has changed since it was written."""


def encode(manifest: Manifest) -> bytes:
    """Return the manifest as JSON with its own sum."""
    content = {
        "step": manifest.step,
        "about": manifest.about,
        "files": {name: asdict(file) for name, file in sorted(manifest.files.items())},
    }
    return json.dumps({"sha256": _sum(content), "content": content}, indent=1).encode()


def decode(text: bytes) -> Manifest:
    """Return the manifest that ``text`` holds.

    Raises:
        DamagedManifestError: The text is no manifest, or its sum is wrong.
    """
    try:
        read = json.loads(text)
    except ValueError:
        empty = "is empty" if not text.strip(b"\0 \n") else "is no JSON"
        raise DamagedManifestError(f"{MANIFEST} {empty}") from None
    if not isinstance(read, dict) or set(read) != {"sha256", "content"}:
        raise DamagedManifestError(f"{MANIFEST} holds no sum of itself: {_EARLIER}, or is damaged")
    content = read["content"]
    if _sum(content) != read["sha256"]:
        raise DamagedManifestError(f"{MANIFEST} differs from what was written")
    files = {name: FileSum(**file) for name, file in content["files"].items()}
    return Manifest(step=content["step"], about=content["about"], files=files)


def _sum(content: object) -> str:
    plain = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(plain.encode()).hexdigest()
