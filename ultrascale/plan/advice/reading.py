"""Reads the adviser's question: every mistake at once, defaults by the kind of work."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

from ultrascale import catalog
from ultrascale.catalog import eks, kubernetes, regions
from ultrascale.catalog.provisioners import PROVISIONERS, Provisioner, installed_provisioners
from ultrascale.config import near
from ultrascale.errors import CatalogError, UsageError
from ultrascale.frozen import Frozen
from ultrascale.plan.advice import model
from ultrascale.plan.advice.held import read_held
from ultrascale.plan.advice.model import (
    Commitment,
    Held,
    Image,
    Question,
    Tolerance,
    Workload,
)
from ultrascale.plan.advice.times import read_time

_Word = TypeVar("_Word", bound=str)

TOLERANCES: Mapping[Workload, Tolerance] = {
    "pre-training": "checkpoint",
    "fine-tuning": "checkpoint",
    "batch-inference": "stateless",
    "online-inference": "stateless",
    "data-processing": "stateless",
    "development": "none",
}
"""Default cost of an interruption, by kind of work."""

COUPLED: frozenset[Workload] = frozenset({"pre-training", "fine-tuning"})
"""Work whose nodes exchange data over EFA, where there are several and the type has EFA."""

REQUIRED: Mapping[str, str] = {
    "workload": f"what it is: {', '.join(model.WORKLOADS)}",
    "type": "instance type, the one that is preferred first",
    "nodes": "nodes at a time",
    "region": "AWS Region",
    "zone": "zone that would do, the one that is preferred first",
    "days": "days that it runs, or `steady`",
}
"""Required answers and their meaning, by option."""


class Given(Frozen):
    """Answers in the user's own words; None for a question left out.

    The attributes are the options of `ultrascale advise`, ``at`` in UTC.
    """

    at: datetime | str
    workload: str | None = None
    type: Sequence[str] = ()
    nodes: int | None = None
    region: str | None = None
    zone: Sequence[str] = ()
    days: str | None = None
    starts: str | None = None
    until: str | None = None
    horizon_days: float | None = None
    tolerance: str | None = None
    coupled: bool | None = None
    utilisation: float = 100
    commitment: str = "none"
    provisioner: str | None = None
    outside_account: bool = True
    kubernetes: str = eks.DEFAULT_VERSION
    placement_group: bool = False
    image: str = "any"
    custom_kubelet: bool = False
    efa_lustre: bool = False
    held: Sequence[str] = ()
    budget: float | None = None

    def missing(self) -> tuple[str, ...]:
        """Return the required options that are missing."""
        return tuple(name for name in REQUIRED if getattr(self, name) in (None, "", (), []))


@dataclass(slots=True)
class _Mistakes:
    lines: list[str] = field(default_factory=list[str])

    def add(self, option: str, wrong: str, got: object, todo: str) -> None:
        self.lines.append(f"--{option}: {wrong}, got {got!r}; {todo}")

    def word(self, option: str, got: str | None, words: Sequence[_Word], what: str) -> _Word | None:
        """Return ``got`` as one of ``words``, None for no word or any other."""
        if not got:
            return None
        for word in words:
            if got == word:
                return word
        self.add(option, f"no {what}", got, near(got, words))
        return None


class _Words(Frozen):
    """Answers in the adviser's terms; None for a missing or wrong one."""

    workload: Workload | None
    tolerance: Tolerance | None
    commitment: Commitment | None
    image: Image | None
    provisioner: Provisioner | None


class _Times(Frozen):
    at: datetime
    starts: datetime
    until: datetime | None
    days: float | None


def read_question(given: Given) -> Question:
    """Return the question that ``given`` asks.

    Raises:
        UsageError: Something is missing, wrong or contradictory. One line for each,
            ``--option: what is wrong, got VALUE; what to do``.
    """
    wrong = _Mistakes(
        [f"--{option}: missing; say {REQUIRED[option]}" for option in given.missing()]
    )
    words = _words(given, wrong)
    _judge_numbers(given, wrong)
    _judge_places(given, wrong)
    _judge_types(given, wrong)
    times = _times(given, wrong)
    held = tuple(read_held(given.held, wrong.add))
    if wrong.lines:
        raise UsageError(wrong.lines)
    return _question(given, words, times, held)


def _question(given: Given, words: _Words, times: _Times, held: tuple[Held, ...]) -> Question:
    workload, commitment, image = words.workload, words.commitment, words.image
    nodes, region = given.nodes, given.region
    assert workload is not None
    assert commitment is not None
    assert image is not None
    assert nodes is not None
    assert region is not None
    coupled = workload in COUPLED and nodes > 1 and any(_has_efa(name) for name in given.type)
    return Question(
        workload=workload,
        instance_types=tuple(given.type),
        nodes=nodes,
        region=region,
        zones=tuple(given.zone),
        at=times.at,
        starts=times.starts,
        until=times.until,
        days=times.days,
        horizon_days=given.horizon_days,
        tolerance=words.tolerance or TOLERANCES[workload],
        coupled=coupled if given.coupled is None else given.coupled,
        utilisation=given.utilisation / 100,
        commitment=commitment,
        provisioner=words.provisioner,
        outside_account=given.outside_account,
        kubernetes_version=given.kubernetes,
        placement_group=given.placement_group,
        image=image,
        custom_kubelet=given.custom_kubelet,
        efa_lustre=given.efa_lustre,
        held=held,
        budget_usd=given.budget,
    )


def _has_efa(name: str) -> bool:
    spec = catalog.lookup(name)
    known = spec.accelerator is not None and spec.knows("efa_cards")
    return known and bool(spec.efa_cards)


def _words(given: Given, wrong: _Mistakes) -> _Words:
    if given.kubernetes not in eks.SUPPORTED_VERSIONS:
        todo = f"use {', '.join(eks.SUPPORTED_VERSIONS)}"
        wrong.add("kubernetes", "a version that is not supported", given.kubernetes, todo)
    outside = {
        name: facts for name, facts in installed_provisioners().items() if not facts.in_account
    }
    if given.provisioner in outside and not given.outside_account:
        word = outside[given.provisioner].word
        clash = f"{word} beside --no-{given.provisioner}"
        wrong.add("provisioner", clash, given.provisioner, "keep one of both")
    return _Words(
        workload=wrong.word("workload", given.workload, model.WORKLOADS, "kind of work"),
        tolerance=wrong.word("tolerance", given.tolerance, model.TOLERANCES, "tolerance"),
        commitment=wrong.word("commitment", given.commitment, model.COMMITMENTS, "commitment"),
        image=wrong.word("image", given.image, model.IMAGES, "image"),
        provisioner=wrong.word("provisioner", given.provisioner, PROVISIONERS, "provisioner"),
    )


def _judge_numbers(given: Given, wrong: _Mistakes) -> None:
    most = kubernetes.NODES_PER_CLUSTER
    if given.nodes is not None and not 1 <= given.nodes <= most:
        wrong.add("nodes", "not a number of nodes", given.nodes, f"write 1 to {most}")
    if not 0 < given.utilisation <= 100:
        wrong.add("utilisation", "not a part of the time", given.utilisation, "write 1 to 100")
    for option, value in (("horizon-days", given.horizon_days), ("budget", given.budget)):
        if value is not None and not 0 < value < float("inf"):
            wrong.add(option, "not more than nothing", value, "write a number above 0")
    if given.horizon_days is not None and given.days not in (None, "steady"):
        todo = "write --days steady, or leave it out"
        wrong.add("horizon-days", "a horizon of work that ends", given.horizon_days, todo)


def _judge_places(given: Given, wrong: _Mistakes) -> None:
    if not given.region:
        return
    try:
        region = regions.lookup_region(given.region)
    except CatalogError as error:
        wrong.lines.append(f"--region: {error}")
        return
    if region.partition == "aws-cn":
        todo = "use a Region of another partition"
        wrong.add("region", "Regions of China are not supported yet", given.region, todo)
    for zone in given.zone:
        if (why := regions.why_no_zone(zone, region.name)) is not None:
            wrong.add("zone", why[0], zone, why[1])
    if len({regions.is_zone_id(zone) for zone in given.zone}) > 1:
        wrong.add("zone", "names and ids mixed", ", ".join(given.zone), "write one or the other")
    for option, words in (("zone", given.zone), ("type", given.type)):
        for twice in sorted({word for word in words if list(words).count(word) > 1}):
            wrong.add(option, "given twice", twice, "leave one out")


def _judge_types(given: Given, wrong: _Mistakes) -> None:
    for name in given.type:
        try:
            catalog.lookup(name)
        except CatalogError as error:
            plain = name.removeprefix("ml.")
            if plain != name:
                wrong.add("type", "a name with SageMaker's prefix", name, f"write {plain}")
            else:
                wrong.lines.append(f"--type: {error}")


def _days(given: Given, wrong: _Mistakes) -> float | None:
    if given.days in (None, "", "steady"):
        return None
    text = str(given.days)
    if re.fullmatch(r"[0-9]{1,5}(\.[0-9]+)?", text) and float(text) > 0:
        return float(text)
    wrong.add("days", "not a number of days", text, "write a number above 0, or steady")
    return None


def _times(given: Given, wrong: _Mistakes) -> _Times:
    at, starts, until = (
        read_time(option, value, wrong.add)
        for option, value in (("at", given.at), ("starts", given.starts), ("until", given.until))
    )
    now = at or datetime.min.replace(tzinfo=UTC)
    for option, time in (("starts", starts), ("until", until)):
        if time is not None and at is not None and time < at:
            todo = "leave it out to start at once" if option == "starts" else "write a later one"
            wrong.add(option, f"before {at:%Y-%m-%dT%H:%MZ}", f"{time:%Y-%m-%dT%H:%MZ}", todo)
    if starts is not None and until is not None and until < starts:
        wrong.add("until", "before --starts", f"{until:%Y-%m-%dT%H:%MZ}", "write the latest start")
    return _Times(at=now, starts=starts or now, until=until, days=_days(given, wrong))
