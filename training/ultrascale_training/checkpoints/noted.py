"""Stores without renames: a manifest makes a checkpoint complete, and a note sets it aside."""

import re
from abc import abstractmethod
from collections.abc import Sequence

from ultrascale_training.checkpoints.manifest import MANIFEST, Manifest, encode
from ultrascale_training.checkpoints.stores import (
    BAD_NOTE,
    Cause,
    SetAside,
    Store,
    bad_note,
    read_bad_note,
    step_of,
)
from ultrascale_training.objects import Objects


class NotedStore(Store):
    """Checkpoints whose names contain the attempt that wrote them, so that no name is used twice.

    Args:
        objects: Files below the place of the checkpoints.
        keep: Newest checkpoints that stay when another is published.
        names: Pattern of checkpoints' names.
    """

    def __init__(self, objects: Objects, *, keep: int, names: re.Pattern[str]) -> None:
        super().__init__(objects, keep=keep)
        self._names = names

    @abstractmethod
    def delete(self, name: str) -> None:
        """Delete a checkpoint, its manifest first, so that it no longer counts as complete."""

    def publish(self, name: str, manifest: Manifest) -> None:
        """Publish ``name``, whose files are all written, as the newest checkpoint."""
        self.objects.put(f"{name}/{MANIFEST}", encode(manifest))
        for other in self.named():
            if step_of(other) == manifest.step and other != name:
                self.delete(other)
        self.make_way()

    def set_aside(self, name: str, *, cause: Cause, reason: str) -> None:
        """Write a note beside the manifest of a checkpoint."""
        self.objects.put(f"{name}/{BAD_NOTE}", bad_note(cause, reason))

    def named(self) -> Sequence[str]:
        """Return the names of the checkpoints that may be loaded, the newest first."""
        found = [name for name in self.folders() if self.is_published(name)]
        return sorted(
            (name for name in found if not self._is_aside(name)), key=step_of, reverse=True
        )

    def aside(self) -> Sequence[SetAside]:
        """Return the checkpoints that were set aside."""
        return [
            read_bad_note(name, self.objects.get(f"{name}/{BAD_NOTE}"))
            for name in sorted(self.folders())
            if self._is_aside(name)
        ]

    def folders(self) -> Sequence[str]:
        """Return the names of all checkpoints, complete or not."""
        return [name for name in self.objects.folders() if self._names.fullmatch(name)]

    def is_published(self, name: str) -> bool:
        """Return whether a checkpoint is complete."""
        return bool(self.objects.names(f"{name}/{MANIFEST}"))

    def _is_aside(self, name: str) -> bool:
        return bool(self.objects.names(f"{name}/{BAD_NOTE}"))
