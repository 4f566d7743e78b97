"""Pipeline schedules of torch 2.13, adapted to the calls of TorchTitan 0.3.0.

TorchTitan passes the parts of a batch; a schedule of torch 2.13 takes a whole batch and splits it.
Without this, the first step with pipeline stages ends with ``Expecting 2 arg_mbs but got 1``.
"""

import inspect
from collections.abc import Sequence
from typing import Any


class Microbatched:
    """A schedule that takes a batch in parts.

    Args:
        schedule: Schedule of torch, which would split the batch itself.
    """

    def __init__(self, schedule: Any) -> None:  # noqa: ANN401 - schedules have no public base
        self._schedule = schedule
        self._inputs: tuple[Sequence[Any], Sequence[Any]] = ([], [])
        self._targets: Sequence[Any] | None = None
        self._run = schedule._step_microbatches
        schedule._split_inputs = lambda *_: self._inputs
        schedule._step_microbatches = self._run_parts

    def __getattr__(self, name: str) -> object:
        return getattr(self._schedule, name)

    def step(self, **given: object) -> object:
        """Train on the parts of a batch."""
        return self._schedule.step(**self._taken(given))

    def eval(self, **given: object) -> object:
        """Compute the losses of the parts of a batch."""
        return self._schedule.eval(**self._taken(given))

    def _taken(self, given: dict[str, Any]) -> dict[str, Any]:
        keywords = given.pop("kwarg_mbs")
        # Only the first stage gets inputs.
        self._inputs = (given.pop("arg_mbs") or [()] * len(keywords), keywords)
        self._targets = given.pop("target_mbs")
        return given

    def _run_parts(
        self, inputs: object, keywords: object, _: object, *more: object, **others: object
    ) -> object:
        return self._run(inputs, keywords, self._targets, *more, **others)


def microbatched(schedule: Any) -> Any:  # noqa: ANN401
    """Return a schedule that takes the parts of a batch instead of a whole batch."""
    parameters = inspect.signature(schedule.step).parameters
    return schedule if "arg_mbs" in parameters else Microbatched(schedule)
