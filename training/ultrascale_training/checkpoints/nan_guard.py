"""Causes of a loss that is not a number: first a bad checkpoint, then a diverging run."""

import logging

from ultrascale_training.checkpoints.stores import Checkpoint, Store, step_of
from ultrascale_training.errors import TrainingError

_log = logging.getLogger("ultrascale_training")
STEPS_AFTER_A_RESUME = 100


class SuspectCheckpointError(Exception):
    """Error: a checkpoint was set aside; a restart takes the checkpoint before."""


class NanGuard:
    """Judge of whether a restart may cure a loss that is not a number.

    Soon after a resume, the checkpoint is suspect: its sums are right, but the state may have been
    broken when it was written. That checkpoint and later ones are set aside, once. If the loss is
    no number again before `keep` newer checkpoints exist, the run itself diverges.

    Args:
        store: Checkpoints of the run.
        resumed: Checkpoint with which this start began, None at step 0.
        within: Steps after a resume in which its checkpoint is suspect; 0 suspects none.
    """

    def __init__(
        self, store: Store, resumed: Checkpoint | None, *, within: int = STEPS_AFTER_A_RESUME
    ) -> None:
        self._store = store
        self._resumed = resumed
        self._within = within

    def judge(self, step: int, loss: float) -> Exception:
        """Return the error to raise; only the first worker calls this: it sets checkpoints aside.

        Args:
            step: Step of the loss; no save may be in progress.
            loss: Loss that is no finite number.

        Returns:
            `SuspectCheckpointError` if a restart takes an earlier checkpoint, otherwise
            `TrainingError`.
        """
        said = f"the loss of step {step} is {loss}"
        advice = "resume from an earlier checkpoint with a lower learning rate in another output"
        resumed = self._resumed
        if resumed is None or step > resumed.step + self._within:
            return TrainingError(f"{said}; {advice}")
        before = [each for each in self._store.aside() if each.cause == "nan"]
        if before:
            return TrainingError(
                f"{said}, again: checkpoint {before[-1].name} was set aside for that already, and "
                f"{resumed.location} leads to it, too; {advice}"
            )
        suspects = [name for name in self._store.named() if step_of(name) >= resumed.step]
        if len(suspects) == len(self._store.named()):
            return TrainingError(
                f"{said}, {step - resumed.step} steps after it resumed from {resumed.location}, "
                f"and there is no checkpoint before that one; {advice}"
            )
        for name in suspects:
            self._store.set_aside(name, cause="nan", reason=said)
        return SuspectCheckpointError(
            f"{said}, {step - resumed.step} steps after it resumed from {resumed.location}: that "
            f"checkpoint is set aside, and the next start takes the one before"
        )
