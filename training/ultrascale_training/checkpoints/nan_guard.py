"""Causes of a loss that is not a number: a wrong device, then a bad checkpoint or the run itself.

A restart repeats the step. If it has a number then, a device computed wrong. If not, and both
starts came from one checkpoint, the checkpoint is suspect; else the run diverges.
"""

import json
import logging

from ultrascale_training.checkpoints.stores import Checkpoint, Store, step_of
from ultrascale_training.errors import TrainingError

_log = logging.getLogger("ultrascale_training")
STEPS_AFTER_A_RESUME = 100
_NOTE = "nan.json"


class SuspectCheckpointError(Exception):
    """Error: a checkpoint was set aside; a restart takes the checkpoint before."""


class NanGuard:
    """Judge of whether a restart may cure a loss that is not a number.

    The first time, a restart repeats the steps. If the same step has no number again soon after
    both starts resumed from one checkpoint, that is suspect: its sums are right, but the state may
    have been broken when it was written. It and later ones are set aside, once. If the loss is no
    number again before `keep` newer checkpoints exist, or had none in the start that wrote the
    checkpoint, the run itself diverges.

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
            `SuspectCheckpointError` if a restart may cure it, otherwise `TrainingError`.
        """
        said = f"the loss of step {step} is {loss}"
        advice = (
            "the run diverges: start it again with a lower rate, which counts from the next start "
            "on, or in another --output-dir from the weights of an earlier checkpoint (--load) "
            "with another --seed, which orders the data anew"
        )
        resumed, first = self._resumed, self._noted()
        before = [each for each in self._store.aside() if each.cause == "nan"]
        came_from = 0 if resumed is None else resumed.step
        if before and resumed is not None:
            return TrainingError(
                f"{said}, again: checkpoint {before[-1].name} was set aside for that already, and "
                f"{resumed.location} leads to it, too, so both are likely sound; {advice}"
            )
        if first is None or step > first["step"]:
            note = json.dumps({"step": step, "resumed": came_from}).encode()
            self._store.durable.objects.put(_NOTE, note)
            return SuspectCheckpointError(
                f"{said}: the next start repeats it; a number then says that a device computed "
                "wrong, none says that the run diverges"
            )
        if resumed is None or first["resumed"] != came_from or step > came_from + self._within:
            return TrainingError(f"{said}, again; {advice}")
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

    def passed(self, step: int) -> None:
        """Tell that steps up to ``step`` have numbers; only the first worker calls this."""
        first = self._noted()
        if first is not None and step >= first["step"]:
            _log.warning(
                "step %d had no number as its loss before, and has one now: a device computed "
                "wrong; check the nodes (ultrascale repair) before more of it is trained on",
                first["step"],
            )
            self._store.durable.objects.delete(_NOTE)

    def _noted(self) -> dict[str, int] | None:
        noted = self._store.durable.objects.get(_NOTE)
        try:
            return None if noted is None else dict(json.loads(noted))
        except (ValueError, TypeError):
            return None
