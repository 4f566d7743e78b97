"""What the containers of a chart's values get, as resources of a job.

Source: https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ultrascale import config
from ultrascale.jobs.values_pieces import TEMPLATES, Piece
from ultrascale.plan import quantities

_SIZES = {"cpu": quantities.millicpu, "memory": quantities.amount}
_DEVICES = ("gpu", "neuron", "efa")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Amount:
    """A resource as a template states it; None where it states none."""

    key: str
    limit: str | int | None
    request: str | int | None

    @property
    def exceeds(self) -> bool:
        """Whether more is requested than allowed."""
        if self.limit is None or self.request is None:
            return False
        size = _SIZES.get(self.key, quantities.amount)
        return size(str(self.request)) > size(str(self.limit))

    @property
    def counts(self) -> str | int | None:
        """What the job asks for: of CPU the request, as it is held to no limit."""
        first, second = self.limit, self.request
        if self.key == "cpu":
            first, second = second, first
        return second if first is None else first


def resources(template: str, chosen: config.JobTemplate) -> Piece:
    """Return the resources of a template.

    A device that is not asked for is not given, as Kubernetes has it.

    Args:
        template: Its name.
        chosen: The template.
    """
    at = (TEMPLATES, template, "resources")
    amounts = [*_amounts(chosen.resources)]
    keys = {each.key: each.counts for each in amounts if each.counts is not None}
    if "neuron" not in keys:
        keys.setdefault("gpu", 0)
    places: dict[config.KeyPath, config.KeyPath] = {("resources",): at}
    notes: dict[config.KeyPath, str] = {}
    mistakes: list[config.Mistake] = []
    for each in amounts:
        word = _word(each.key)
        stated = "limits" if each.counts == each.limit else "requests"
        places["resources", each.key] = (*at, stated, word)
        if each.exceeds:
            wrong = f"more than its limit, {each.limit}"
            mistakes.append(config.Mistake((*at, "requests", word), wrong, "raise the limit"))
        elif note := _note(each):
            where = "requests" if each.key in _DEVICES else "limits"
            notes[(*at, where, word)] = note
    return Piece(keys={"resources": keys}, places=places, mistakes=tuple(mistakes), notes=notes)


def _amounts(stated: config.ContainerResources) -> Iterator[_Amount]:
    for key in (*_DEVICES, "cpu", "memory"):
        yield _Amount(
            key=key, limit=getattr(stated.limits, key), request=getattr(stated.requests, key)
        )


def _word(key: str) -> str:
    """Return what Kubernetes calls a resource."""
    return config.ResourceAmounts.model_fields[key].alias or key


def _note(amount: _Amount) -> str | None:
    """Return what does not hold of request and limit."""
    if amount.key == "cpu":
        if amount.limit is None:
            return None
        return (
            f"{amount.limit} is left out: a limit would throttle a pod whose node has CPU to spare"
        )
    if amount.limit is None or amount.request in (None, amount.limit):
        return None
    if amount.key == "memory":
        return f"{amount.limit} is requested as well: what a pod may use is kept for it"
    return (
        f"{amount.request} is not its limit, {amount.limit}, and Kubernetes gives devices only "
        f"where both are equal: {amount.limit} count"
    )
