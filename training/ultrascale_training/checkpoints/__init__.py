"""Checkpoints that survive: written beside training, published whole, verified at loading."""

from ultrascale_training.checkpoints.directory import DirectoryStore
from ultrascale_training.checkpoints.nan_guard import (
    STEPS_AFTER_A_RESUME,
    NanGuard,
    SuspectCheckpointError,
)
from ultrascale_training.checkpoints.saver import Saver, State, explained, tensors_of
from ultrascale_training.checkpoints.sound import (
    UnreadableError,
    load,
    newest_sound,
    open_checkpoint,
    open_store,
    shared_reader,
    verify,
)
from ultrascale_training.checkpoints.stores import Checkpoint, Store
from ultrascale_training.checkpoints.writer import state_bytes

__all__ = [
    "STEPS_AFTER_A_RESUME",
    "Checkpoint",
    "DirectoryStore",
    "NanGuard",
    "Saver",
    "State",
    "Store",
    "SuspectCheckpointError",
    "UnreadableError",
    "explained",
    "load",
    "newest_sound",
    "open_checkpoint",
    "open_store",
    "shared_reader",
    "state_bytes",
    "tensors_of",
    "verify",
]
