"""Fingerprints of the data, the tokenizer and the order, kept in each checkpoint.

A run that resumes with changed data, or with the same data in another order, sees some samples
twice and others never, and its loss does not show that.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

_END = 1 << 16
_SAMPLED = 256
Fingerprint = Mapping[str, str]
"""Fingerprints by part: ``data``, ``tokenizer``, ``order``."""


def of_value(value: object) -> str:
    """Return the fingerprint of a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def of_files(paths: Iterable[Path]) -> str:
    """Return the fingerprint of some files: names, sizes, and the ends of up to 256 of them.

    The ends are 64 KiB each. Data sets hold terabytes, so a change in the middle of a file that
    keeps its size is not noticed.
    """
    files = sorted(paths)
    found = hashlib.sha256()
    stride = max(1, -(-len(files) // _SAMPLED))
    for number, path in enumerate(files):
        size = path.stat().st_size
        found.update(f"{path.name} {size}\n".encode())
        if number % stride:
            continue
        with path.open("rb") as file:
            found.update(file.read(_END))
            file.seek(max(0, size - _END))
            found.update(file.read(_END))
    return found.hexdigest()


def differences(before: Fingerprint | None, now: Fingerprint) -> list[str]:
    """Return the parts that differ; empty for a checkpoint without fingerprints."""
    return [part for part in sorted(now) if before is not None and before.get(part) != now[part]]


def refusal(parts: Iterable[str], checkpoint: str) -> list[str]:
    """Return a line for each part that differs from ``checkpoint``."""
    return [
        f"--data-dir: the {part} of {checkpoint} differs from today's, so samples would be seen "
        "twice or never; name the data of that run, or accept the change with --accept-new-data"
        for part in parts
    ]
