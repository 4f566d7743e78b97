"""Texts that are recorded by their hashes, one line each, and shown where they change.

A recording leaves the texts themselves under ``.make/golden/``, by the hash of what it recorded: a
test that fails on that machine shows a difference, and the whole text on any other.
"""

import difflib
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.folders import ROOT

KEPT = ROOT / ".make" / "golden"


@dataclass(frozen=True)
class Hashed:
    """Labels and hashes of texts in a file."""

    file: Path  # A label and a hash a line
    kept: Path = KEPT  # Where recordings leave the texts themselves

    def record(self, texts: Mapping[str, str]) -> None:
        """Write the hashes of ``texts`` anew, and keep the texts for a later difference."""
        lines = (f"{label} {_hash(text)}\n" for label, text in texts.items())
        self.file.write_text("".join(lines))
        place = self._place()
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(texts, indent=0))

    def changes(self, texts: Mapping[str, str], prefix: str = "") -> str:
        """Return how ``texts`` differ from the recorded ones; empty where they do not.

        Args:
            texts: Texts by label.
            prefix: Beginning of the recorded labels to compare with.
        """
        recorded = {label: hash for label, hash in self._lines() if label.startswith(prefix)}
        changed = [label for label, text in texts.items() if recorded.get(label) != _hash(text)]
        gone = [label for label in recorded if label not in texts]
        if not changed and not gone:
            return ""
        place = self._place()
        before: dict[str, str] = json.loads(place.read_text()) if place.exists() else {}
        shown = [_shown(label, before.get(label), texts[label]) for label in changed]
        return "\n".join([*(f"== {label}: is gone\n" for label in gone), *shown])

    def _lines(self) -> Iterator[tuple[str, str]]:
        for line in self.file.read_text().splitlines():
            label, _, hash = line.rpartition(" ")
            yield label, hash

    def _place(self) -> Path:
        """Return where the texts of the recorded hashes are: those of others are never shown."""
        return self.kept / f"{self.file.stem}-{_hash(self.file.read_text())}.json"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _shown(label: str, before: str | None, now: str) -> str:
    if before is None:
        return f"== {label}: is now\n{now}"
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), now.splitlines(keepends=True), "recorded", "now"
    )
    return f"== {label}: changed\n{''.join(lines)}"
